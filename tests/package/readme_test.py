#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the documents say is what there is.

  readme_test.py extract SOURCE SNIPPETS.cpp SNIPPETS.c
  readme_test.py check SOURCE BUILD SNIPPETS

`extract` writes the C++ and C snippets of all documents as two sources of one program. `check` runs
that program, the texts in castor's own form (`castor check`) and the shell sessions, and compares
what they print with the documents. It also checks links, cited files, cited tests, sections that
comments cite, and the length of README.md.

A fenced block is tested by its language: `cpp` and `c` (with a main they are run, else compiled),
`castor`, `console` (lines with `$ ` are commands, the others what they print), `output` (what the
program before it prints), `ebnf` (a part of the grammar in ir/text/text.hpp). A line `...` in what is
printed stands for any lines. Other languages are not tested.
"""
import collections
import fnmatch
import os
import pathlib
import re
import subprocess
import sys
import tempfile

README_LINES = 170
FOLDERS = ["ir", "jit", "runtime", "tests", "bench", "tools"]
Block = collections.namedtuple("Block", "document line language text")


def documents(source):
    found = [source / "README.md"]
    for folder in FOLDERS:
        found += sorted((source / folder).rglob("*.md"))
    return found


def blocks_of(document):
    """The fenced blocks of a document, with the line that each begins in."""
    text = document.read_text(encoding="utf-8")
    found = []
    for match in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S):
        line = text.count("\n", 0, match.start(2)) + 1
        found.append(Block(document, line, match[1], match[2]))
    return found


def prose_of(document):
    """The text without fenced blocks."""
    return re.sub(r"^```.*?^```$", "", document.read_text(encoding="utf-8"), flags=re.M | re.S)


def programs(source):
    """The snippets in C++ and C, in order."""
    return [block for document in documents(source) for block in blocks_of(document)
            if block.language in ("cpp", "c")]


def is_run(block):
    return re.search(r"\bint main\(", block.text) is not None


# ---- extract ----

def entry(number):
    return f"run_snippet_{number}"


def as_function(block, number, source):
    """Its includes, and the remaining text with main renamed to a function that ends like main."""
    includes = re.findall(r"^#include .*$", block.text, re.M)
    body = re.sub(r"^#include (.*)$", r"// #include \1", block.text, flags=re.M)
    if is_run(block):
        body = re.sub(r"\bint main\((void)?\)", lambda main: f"int {entry(number)}({main[1] or ''})", body)
        body = re.sub(r"\}\s*$", "return 0; }\n", body)
    name = block.document.relative_to(source)
    return includes, f'#line {block.line} "{name}"\n{body}'


def extract(source, cpp_path, c_path):
    sources = {"cpp": ([], []), "c": ([], [])}
    calls = []
    for number, block in enumerate(programs(source)):
        includes, body = as_function(block, number, source)
        heads, bodies = sources[block.language]
        heads += includes
        if block.language == "cpp":
            bodies.append(f"namespace snippet_{number} {{\n{body}}}\n")
        elif is_run(block):
            bodies.append(f"int {entry(number)}(void);\n{body}")
            sources["cpp"][1].append(f'extern "C" int {entry(number)}(void);\n')
        else:
            bodies.append(body)
        if is_run(block):
            scope = f"snippet_{number}::" if block.language == "cpp" else ""
            calls.append(f"  if (number == {number}) return {scope}{entry(number)}();\n")
    sources["cpp"][0].append("#include <cstdlib>")
    sources["cpp"][1].append("int main(int, char** argv) {\n  const int number = std::atoi(argv[1]);\n" +
                             "".join(calls) + "  return 3;\n}\n")
    for path, language in ((cpp_path, "cpp"), (c_path, "c")):
        heads, bodies = sources[language]
        path.write_text("\n".join(dict.fromkeys(heads)) + "\n" + "".join(bodies), encoding="utf-8")


# ---- check ----

class Checker:
    """Collects what is wrong, so that one run shows all of it."""

    def __init__(self, source, build, snippets):
        self.source, self.build, self.snippets = source, build, snippets
        self.mistakes = []
        self.counts = collections.Counter()
        self.paths = self.find_paths()
        self.headings = {document: headings_of(document) for document in documents(source)}
        info = self.run([build / "castor", "info"])[1]
        self.has_code = re.search(r"^best tier: *none", info, re.M) is None

    def mistake(self, where, text):
        self.mistakes.append(f"{where}: {text}")

    def place(self, block):
        return f"{block.document.relative_to(self.source)}:{block.line}"

    def find_paths(self):
        """Every file and folder, from the root, without build outputs."""
        found = set()
        for folder, folders, files in os.walk(self.source):
            folders[:] = [name for name in folders if name not in (".git", "build", "__pycache__")]
            at = pathlib.Path(folder).relative_to(self.source)
            found |= {(at / name).as_posix() for name in folders + files}
        return found

    def run(self, command, **options):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              cwd=self.source, check=False, **options)
        return done.returncode, done.stdout

    # -- snippets

    def check_programs(self):
        for number, block in enumerate(programs(self.source)):
            self.counts[block.language] += 1
            if not is_run(block):
                continue
            status, printed = self.run([self.snippets, str(number)])
            expected = self.output_after(block)
            if status != 0:
                self.mistake(self.place(block), f"exit status {status}: {printed}")
            elif expected is None:
                self.mistake(self.place(block), "a program without an ```output block after it")
            elif not prints(expected, printed):
                self.mistake(self.place(block), f"prints\n{printed}\nexpected\n{expected}")

    @staticmethod
    def output_after(block):
        following = [each for each in blocks_of(block.document) if each.line > block.line]
        return following[0].text if following and following[0].language == "output" else None

    def check_castor_text(self, block, folder):
        """Machine code against the interpreter; without machine code, that the text is valid."""
        path = folder / "snippet.castor"
        path.write_text(block.text, encoding="utf-8")
        command = ["check", path] if self.has_code else ["dump", path, "--stage", "ir"]
        status, printed = self.run([self.build / "castor", *command])
        if status != 0:
            self.mistake(self.place(block), f"castor {command[0]}: {printed}")

    def check_session(self, block):
        parts = re.split(r"^\$ (.*)\n", block.text, flags=re.M)
        if parts[0] or len(parts) < 3:
            self.mistake(self.place(block), "a ```console block begins with `$ ` and a command")
        path = f"{self.build}{os.pathsep}{os.environ['PATH']}"
        for command, expected in zip(parts[1::2], parts[2::2]):
            command = command.replace("build/release/", f"{self.build}/")
            status, printed = self.run(["bash", "-c", command], env=dict(os.environ, PATH=path))
            if status != 0 or not prints(expected, printed):
                self.mistake(self.place(block), f"{command}: status {status}, prints\n{printed}\n"
                             f"expected\n{expected}")

    def check_grammar(self, block):
        header = (self.source / "ir/text/text.hpp").read_text(encoding="utf-8")
        header = re.sub(r"^//(   )?", "", header, flags=re.M)
        if block.text not in header:
            self.mistake(self.place(block), "the grammar differs from that in ir/text/text.hpp")

    def check_blocks(self, folder):
        self.check_programs()
        checks = {"castor": lambda block: self.check_castor_text(block, folder),
                  "console": self.check_session, "ebnf": self.check_grammar}
        for document in documents(self.source):
            for block in blocks_of(document):
                if block.language in checks:
                    self.counts[block.language] += 1
                    checks[block.language](block)

    # -- links and files

    def check_links(self, document):
        name = document.relative_to(self.source)
        for target in re.findall(r"\]\(([^)\s]+)\)", prose_of(document)):
            if "://" in target:
                continue
            self.counts["links"] += 1
            path, _, anchor = target.partition("#")
            to = (document.parent / path).resolve() if path else document
            if not to.exists():
                self.mistake(name, f"the link {target} leads nowhere")
            elif anchor and anchor not in map(slug, self.headings.get(to, [])):
                self.mistake(name, f"the link {target} names a heading that is not there")

    def exists(self, word):
        """Whether a file or folder has that name, or one that ends so. Wildcards are those of a shell."""
        word = re.sub(r"^(\.\./)+", "", word).rstrip("/")
        if word in self.paths:
            return True
        if any(mark in word for mark in "*?["):
            return bool(fnmatch.filter(self.paths, word) or fnmatch.filter(self.paths, "*/" + word))
        return any(path.endswith("/" + word) for path in self.paths)

    def check_cited_files(self, document):
        name = document.relative_to(self.source)
        for word in cited_words(prose_of(document)):
            program = re.fullmatch(r"build/\w+/tests/(\w+)", word)
            if program:
                word = f"tests/*/{program[1]}.c*"
            if is_path(word):
                self.counts["cited files"] += 1
                if not self.exists(word):
                    self.mistake(name, f"cites {word}, which does not exist")

    def check_cited_tests(self, document):
        """Each alternative of a pattern for ctest selects a test."""
        cmake = (self.source / "tests/CMakeLists.txt").read_text(encoding="utf-8")
        names = set(re.findall(r"add_test\(\s*NAME (\w+)", cmake))
        names |= {path.stem for suffix in ("c", "cpp")
                  for path in (self.source / "tests").rglob(f"*_test.{suffix}")}
        text = document.read_text(encoding="utf-8").replace("\\|", "|")
        for quoted, plain in re.findall(r"ctest [^`\n]*?-R (?:'([^'\n]*)'|([\w-]+))", text):
            whole = quoted or plain
            prefixed = re.fullmatch(r"\^\((.*)\)", whole)
            anchor = "^" if prefixed else ""
            for part in re.split(r"\|(?![^(]*\))", prefixed[1] if prefixed else whole):
                if not any(re.search(anchor + part, name) for name in names):
                    self.mistake(document.relative_to(self.source), f"ctest -R '{part}' selects no test")

    def check_readme(self):
        lines = (self.source / "README.md").read_text(encoding="utf-8").count("\n")
        if lines > README_LINES:
            self.mistake("README.md", f"has {lines} lines, at most {README_LINES} are allowed")

    def check_results(self):
        page = (self.source / "bench/README.md").read_text(encoding="utf-8")
        for path in sorted((self.source / "bench/results").glob("*.md")):
            if f"(results/{path.name})" not in page:
                self.mistake("bench/README.md", f"does not link results/{path.name}")

    def check_comments(self):
        """Comments cite documents of the repository, and sections that these have."""
        for path in sorted(self.paths):
            if not re.search(r"\.(c|h|cpp|hpp|py|txt)$|CMakeLists\.txt$", path):
                continue
            if path == "tests/package/readme_test.py":
                continue
            text = (self.source / path).read_text(encoding="utf-8", errors="replace")
            if "DESIGN.md" in text:
                self.mistake(path, "cites DESIGN.md, which is not in the repository")
            text = re.sub(r"\n\s*(//+<?|#) ?", " ", text)
            for cited, section in re.findall(r"(?<![\w/-])(?!share/)((?:\w[\w-]*/)*README\.md)(?:, ([A-Z]\w*(?: [a-z]\w*)*))?", text):
                self.counts["citations in comments"] += 1
                document = self.source / cited
                if document not in self.headings:
                    self.mistake(path, f"cites {cited}, which does not exist")
                elif section and not any(section.startswith(heading) for heading in self.headings[document]):
                    self.mistake(path, f"cites {cited}, {section}: there is no such section")


def prints(expected, printed):
    """Whether a text is what is expected, in which a line `...` stands for any lines."""
    expected, printed = expected.strip("\n"), printed.strip("\n")
    lines = [".*" if line == "..." else re.escape(line.rstrip()) for line in expected.split("\n")]
    pattern = "\n".join(lines).replace(".*\n", "(?:.*\n)?").replace("\n.*", "(?:\n.*)?")
    found = "\n".join(line.rstrip() for line in printed.split("\n"))
    return re.fullmatch(pattern, found, re.S) is not None


def headings_of(document):
    return [match.strip() for match in re.findall(r"^#+ (.*)$", prose_of(document), re.M)]


def slug(heading):
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def cited_words(prose):
    """Words in code font."""
    for span in re.findall(r"`([^`\n]+)`", prose):
        yield from (word.strip("'\"();,") for word in span.split())


def is_path(word):
    """Whether a word in code font names a file or folder of the repository."""
    if not re.fullmatch(r"[\w./*-]+", word) or re.match(r"(build/|/|-|NAME)", word):
        return False
    first = re.sub(r"^(\.\./)+", "", word).split("/")[0]
    has_suffix = re.search(r"\w\.(hpp|cpp|h|c|py|md|castor|csv)$", word) is not None
    is_folder = word.endswith("/") and word[0].islower()
    return has_suffix or ("/" in word and (first in FOLDERS or is_folder))


def check(source, build, snippets):
    checker = Checker(source, build, snippets)
    with tempfile.TemporaryDirectory() as folder:
        checker.check_blocks(pathlib.Path(folder))
    for document in documents(source):
        checker.check_links(document)
        checker.check_cited_files(document)
        checker.check_cited_tests(document)
    checker.check_readme()
    checker.check_results()
    checker.check_comments()
    for what in ("cpp", "c", "castor", "console", "ebnf", "links", "cited files", "citations in comments"):
        if checker.counts[what] == 0:
            checker.mistake("readme_test", f"found no {what} in the documents")
    print(", ".join(f"{count} {what}" for what, count in checker.counts.items()))
    if checker.mistakes:
        sys.exit("readme_test:\n" + "\n".join(checker.mistakes))


def main():
    mode, source, *paths = sys.argv[1:]
    paths = [pathlib.Path(path).resolve() for path in paths]
    {"extract": extract, "check": check}[mode](pathlib.Path(source).resolve(), *paths)


if __name__ == "__main__":
    main()
