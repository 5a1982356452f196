# SPDX-License-Identifier: Apache-2.0
"""The words that castor's glossary replaces, as patterns for tools/terms. Patterns leave out uses that
mean something else: in place, the last place of a number, execution ports, taps of a filter."""
import dataclasses

CONVOLUTION = r"(jit|runtime|bench|tests/.*)/conv|.*conv\w*\."
LANES = r"jit/(lane|lower|emit)/"


@dataclasses.dataclass(frozen=True)
class Term:
    word: str     # as the report calls it
    instead: str  # what to write
    text: str = ""
    names: str = ""
    only: str = ""  # paths where the word has the meaning that the glossary replaces; empty: all


TERMS = [
    Term("most_, least_", "max_, min_", names=r"(?<!_at)_(?:most|least)_(?=[a-z])"),
    Term("behind", "after", r"\bbehind\b", r"_behind_"),
    Term("in front of", "before", r"\bin front\b", r"_in_front_"),
    Term("at the most", "at most, at least", r"\bat the (?:most|least)\b"),
    Term("lies", "is stored at, starts at, is", r"\b(?:lies?|lying)\b", r"_lies_"),
    Term("shall", "must, should", r"\bshall\b"),
    Term("likewise", "the noun again", r"\blikewise\b"),
    Term("the same of", "the noun again", r"(?:^|[.;:] )the same of\b|\bwhat is the same for\b"),
    Term("Of ...", "a sentence with a subject", r"^of\b"),
    Term("so many", "n",
         r"\bso[- ]many\w*|(?<!\bhalf )(?<!\btwice )(?<!\btimes )(?<!\bquarter )(?<!\boften )"
         r"\bas many\b(?!(?: [\w`'-]+){0,5} as\b)", r"_so_many_"),
    Term("side by side", "adjacent, consecutive", r"\bside by side\b"),
    Term("walk", "access pattern, strides; iterate",
         r"\bwalk(?:s|ed|ing)?\b", r"_walk(?:s|ed|er|ing)?_"),
    Term("dear", "cost", r"\bdear(?:er|est|ly)?\b", r"_dear(?:er|est)?_"),
    Term("price", "cost", r"\bprices?\b", r"_prices?_"),
    Term("place", "offset, origin, position",
         r"(?<!\bin )(?<!\bin-)(?<!\blast )(?<!\btake )(?<!\btakes )(?<!\btook )(?<!\bdecimal )"
         r"\bplaces?\b",
         r"(?!^_place_(?!of_)[a-z])(?<!_in)(?<!_last)(?<!_decimal)_places?_"),  # `place_x` is a verb
    Term("piece", "task, partition, slice",
         r"\bpieces?\b(?! of (?:machine )?(?:code|memory)\b)", r"_pieces?_"),
    Term("share", "task, partition",
         r"\b(?:an?|the|its|this|of|per|their|own) shares?\b|\bshar(?:e[sd]?|ing) out\b",
         r"^_shares?_$|_shares?_(?:begin|of)_|_conv_shares_"),
    Term("team", "tasks of one region", r"\bteams?\b", r"_teams?_"),
    Term("rest", "remainder, tail", r"\brests?\b(?! (?:on|upon)\b)", r"_rests?_"),
    Term("anew", "again", r"\banew\b", r"_anew_"),
    Term("prologue", "entry", r"\bprologues?\b", r"_prologues?_"),
    Term("emit_epilogue", "emit_exit, or what it emits", names=r"_emit_epilogue_"),
    Term("port", "memory operand", r"\b(?:memory|broadcast|source|sink) ports?\b",
         r"_(?:memory|broadcast|bit|strided|periodic|window)_ports?_"),
    Term("cells", "threshold table", r"(?<!fuzz/)\bcells?\b", r"_cells?_", only=r"jit/"),
    Term("leaf", "materialised value", r"\bleaf\b", r"_leaf_", only=r"jit/(plan|lower)/|runtime/"),
    Term("scope", "hoisting level", r"\bscopes?\b", r"_scopes?_", only=LANES),
    Term("nest code", "kernel code", r"\bnest codes?\b", r"_nest_codes?_"),
    Term("turn around", "transpose", r"\bturn(?:s|ed)? around\b", r"_turn(?:s|ed)?(?:_around)?_",
         only=r"(jit|runtime)/"),
    Term("dword", "32-bit lane, i32; k group",
         r"\bdwords?\b(?! ptr)", r"_dwords_|_dword_(?=[a-z])|(?<=[a-z])_dword_"),
    Term("first cache", "L1, L2, last-level cache", r"\b(?:first|second|last) caches?\b",
         r"_(?:first|second|last)_cache_"),
    Term("line of the cache", "cache line", r"\blines? of (?:the|a) cache\b"),
    Term("ask for lines", "prefetch", r"\bask(?:s|ed)? for (?:\w+ )?lines?\b|\bfetched ahead\b"),
    Term("lay out", "pack", r"\b(?:lay|lays|laid) out\b", r"_(?:lay|lays|laid)_out_", only=CONVOLUTION),
    Term("in the lanes", "pixel-vectorised, channel-vectorised", r"\b(?:pixels|channels) in the lanes\b",
         r"_conv_lanes_"),
    Term("last taps", "peeled k steps", r"\blast taps?\b", r"_last_taps?_"),
    Term("windows", "im2col", names=r"_windows_|_dwords_hold_", only=CONVOLUTION),
    Term("planes", "packed input, nchw4c plane", r"(?<!nchw4c )\bplanes?\b", r"(?<!nchw4c)_planes?_",
         only=CONVOLUTION),
    Term("phase", "stride phase", r"(?<!\bstride )\bphases?\b", r"(?<!_stride)_phases?_",
         only=CONVOLUTION),
    Term("band", "row range", r"\bbands?\b", r"_bands?_", only=CONVOLUTION),
    Term("quad", "group of four pixels", r"\bquads?\b", r"_quads?_", only=CONVOLUTION),
    Term("unit", "panel, group of channels", names=r"_units?_", only=r"(jit|runtime)/conv"),
    Term("part", "partial sum, cache block, half", names=r"_parts?_", only=r"(jit|runtime)/conv"),
    Term("record", "panel", r"\brecords?\b", r"_records?_", only=r"(jit|runtime)/conv"),
    Term("gaps", "dead lanes", r"\bgaps?\b", r"_gaps?_", only=r"(jit|runtime)/conv"),
    Term("flip", "sign flip", r"(?<!sign )\bflip(?:s|ped)?\b", r"(?<!sign)_flip(?:s|ped)?_",
         only=r"(jit|runtime)/conv"),
    Term("guarded", "border row, border pixel", r"\bguarded\b", r"_guarded_",
         only=r"(jit|runtime)/conv"),
    Term("stage", "staging buffer", names=r"_stage_", only=r"jit/(conv|emit)|runtime/conv"),
    Term("form", "candidate, plan; spec", names=r"_forms?_", only=r"(jit|runtime)/conv"),
]
