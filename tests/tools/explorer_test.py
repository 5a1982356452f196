#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Drives the page of castor dump --html in headless Chromium: usage explorer_test.py CASTOR EXAMPLES.

EXAMPLES is tools/examples. At both widths, dark and light: tabs, links, highlighting, keys, no message in the
console, nothing wider than the screen, and the time until the page of the largest golden kernel is shown.
`--screenshots FOLDER` keeps what was seen.
"""
import argparse
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import unittest

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError:
    sys.exit("explorer_test: Selenium is missing; tools/setup installs it (Debian: python3-selenium)")

WIDTHS = {"wide": (1280, 900), "narrow": (390, 844)}
MAX_SECONDS = 1.0  # until the largest page is shown

FUSED = """func @fused(%x: u8[1, 64, 56, 56], %w: i8[64, 64, 3, 3], %s: f32[64, 1, 1]) -> (u8[1, 64, 56, 56]) {
  %y = conv_integer %x, %w {pads = [1, 1, 1, 1]}
  %f = convert %y : f32
  %m = mul %f, %s
  %z = convert %m {overflow = saturate, rounding = nearest_even} : u8
  return %z
}
"""
DEPTHWISE = """func @depthwise(%x: u8[1, 32, 112, 112], %w: i8[32, 1, 3, 3]) -> (i32[1, 32, 112, 112]) {
  %y = conv_integer %x, %w {group = 32, pads = [1, 1, 1, 1]}
  return %y
}
"""
# The kernel of most bytes in tests/data/golden/kernels.txt, on avx512.
LARGEST = """func @largest(%x: i8[1, 56, 56, 96], %w: i8[96, 1, 7, 7]) -> (i32[1, 56, 56, 96]) {
  %y = conv_integer %x, %w {group = 96, layout = nhwc, pads = [3, 3, 3, 3]}
  return %y
}
"""
ZEN4_PORTS = ["FP0", "FP1", "FP2", "FP3", "FP4", "FP5", "ALU0", "ALU1", "ALU2", "ALU3", "branch"]
KERNELS = pathlib.Path(__file__).parents[1] / "data/golden/kernels.txt"
# An operation of which nothing is left where vectors are of 512 bits.
QUANTIZE = """func @quantize(%x: f32[?n, 64], %s: f32[], %z: u8[]) -> (u8[?n, 64]) {
  %y = quantize_linear %x, %s, %z : u8
  return %y
}
"""
# Text that would be markup, and end the script that holds the model, were it not escaped. The function's text
# has it in a comment, which the model does not keep, and the file in its name.
HOSTILE_NAME = "<img src=x onerror=alert(1)></script><b>.castor"


# Seconds; null before there is a picture.
FIRST_PICTURE = """
    const [navigation] = performance.getEntriesByType('navigation');
    const [picture] = performance.getEntriesByName('first-contentful-paint');
    return picture === undefined || navigation.loadEventEnd === 0 ? null :
        Math.max(navigation.loadEventEnd, picture.startTime) / 1000"""


class Page:
    """A page in the browser."""

    def __init__(self, browser, path, width):
        self.browser = browser
        size = WIDTHS[width]
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": width == "narrow"})
        browser.get(path.as_uri())

    def all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def script(self, text, *arguments):
        return self.browser.execute_script(text, *arguments)

    def keys(self, *keys):
        for key in keys:
            ActionChains(self.browser).send_keys(key).perform()

    def point_at(self, selector):
        target = self.one(selector)
        self.script("arguments[0].scrollIntoView({block: 'center'})", target)
        ActionChains(self.browser).move_to_element(target).perform()
        return target

    def console(self):
        return [entry["message"] for entry in self.browser.get_log("browser")]

    def count(self, selector):
        return self.script("return document.querySelectorAll(arguments[0]).length", selector)


class ExplorerTest(unittest.TestCase):
    castor = None
    examples = None
    screenshots = None

    @classmethod
    def setUpClass(cls):
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                         "--hide-scrollbars", "--window-size=1280,900"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        cls.browser = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        cls.folder = tempfile.TemporaryDirectory()
        cls.pages = {}
        for name, text in (("fused", FUSED), ("depthwise", DEPTHWISE), ("largest", LARGEST),
                           ("quantize", QUANTIZE)):
            source = pathlib.Path(cls.folder.name) / f"{name}.castor"
            source.write_text(text)
            cls.make(name, source, "avx512" if name == "largest" else "avx512_vbmi")
        for name in ("normalize", "dequantize", "split"):
            cls.make(name, cls.examples / f"{name}.castor", "avx512_vbmi")

    @classmethod
    def make(cls, name, source, tier, core="zen4"):
        page = pathlib.Path(cls.folder.name) / f"{name}.html"
        subprocess.run([cls.castor, "dump", str(source), "--html", str(page), "--isa", tier, "--core", core],
                       check=True)
        cls.pages[name] = page

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()
        cls.folder.cleanup()

    def tearDown(self):
        """Nothing that a test did is in the console."""
        self.assertEqual([entry["message"] for entry in self.browser.get_log("browser")], [])

    def open(self, name, width="wide"):
        page = Page(self.browser, self.pages[name], width)
        self.assertEqual(page.one("body").get_attribute("data-ready"), "true")
        WebDriverWait(self.browser, 20).until(lambda _: page.one("body").get_attribute("data-complete") == "true")
        return page

    def save(self, page, name):
        if self.screenshots is not None:
            page.browser.save_screenshot(str(self.screenshots / f"{name}.png"))

    def for_each_width(self, name):
        for width in WIDTHS:
            with self.subTest(page=name, width=width):
                yield width, self.open(name, width)

    # ---- what is there

    def test_holds_everything_itself(self):
        for name, path in self.pages.items():
            text = path.read_text()
            with self.subTest(page=name):
                self.assertNotRegex(text, r"(?:src|href)\s*=\s*[\"']?(?:https?:)?//")
                self.assertIn("default-src 'none'", text)
                page = self.open(name)
                fetched = page.script("return performance.getEntriesByType('resource').map((each) => each.name)")
                self.assertEqual(fetched, [])
                self.assertEqual(page.console(), [])

    def test_every_instruction_has_an_origin(self):
        for name in self.pages:
            page = self.open(name)
            for tab in range(len(page.all("#tiers button"))):
                page.script("document.querySelectorAll('#tiers button')[arguments[0]].click()", tab)
                WebDriverWait(self.browser, 20).until(lambda _: page.one("body").get_attribute("data-complete") == "true")
                with self.subTest(page=name, tier=tab):
                    self.assertGreater(page.count("#pane-code .line"), 10)
                    self.assertEqual(page.script("""
                        return [...document.querySelectorAll('#pane-code .line')].filter((line) =>
                            !/\\bsection:\\d+:[1-9]\\d*:/.test(line.dataset.keys)).length"""), 0)

    def test_shows_loops_with_their_bound(self):
        page = self.open("normalize")
        loops = page.all("#pane-nest .loop")
        self.assertGreaterEqual(len(loops), 2)
        for loop in loops:
            found = re.search(r"(\d+\.\d\d) cycles by (.+)", loop.text)
            bars = {name: float(cycles) for name, cycles in page.script("""
                return [...arguments[0].querySelectorAll('.bar')].map((bar) =>
                    [bar.querySelector('.bar-name').textContent, bar.querySelector('.bar-value').textContent])""", loop)}
            self.assertLessEqual({*ZEN4_PORTS, "load", "store", "front end"}, bars.keys())
            holds = page.script("""return [...arguments[0].querySelectorAll('.bar.holds .bar-name')]
                .map((each) => each.textContent)""", loop)
            self.assertTrue(found[2] in holds or {*found[2].split()} <= {*holds}, found[2])
            for name in holds:
                self.assertEqual(bars[name], float(found[1]), f"{name} bounds the loop")
            self.assertEqual(max(bars.values()), float(found[1]))
            widths = page.script("""return [...arguments[0].querySelectorAll('.bar.holds')].map((bar) =>
                bar.querySelector('.bar-fill').offsetWidth / bar.querySelector('.bar-track').offsetWidth)""", loop)
            self.assertEqual(widths, [1] * len(holds))
            self.assertRegex(loop.text, r"\d B loaded · [\d,]+ B stored · [\d,]+ elements")
            self.assertRegex(loop.text, r"\d B of code")

    def test_draws_convolutions(self):
        page = self.open("fused")
        self.assertGreaterEqual(page.count("#convolution tr"), 2)
        self.assertEqual(page.count("#convolution tr.chosen"), 1)
        drawn = lambda: [each.text for each in page.all("#convolution figcaption b")]
        self.assertEqual(drawn(), ["Blocks", "Register tile", "Packed input: nchw4c", "Packed weights"])
        self.assertEqual(page.count("#convolution svg"), 4)
        self.assertGreater(page.count("#convolution .accumulator"), 8)
        self.assertGreaterEqual(page.count("#convolution .block"), 1)
        bars = page.script("""return [...document.querySelectorAll('.cost-bar div')].map((bar) =>
            [...bar.children].reduce((sum, part) => sum + part.getBoundingClientRect().width, 0))""")
        self.assertEqual(bars, sorted(bars), "costlier candidates have longer bars")
        weights = "return [...document.querySelectorAll('#convolution figure:last-child .byte-name')].map((each) => each.textContent)"
        self.assertEqual(page.script(weights), 9 * ["c0", "c1", "c2", "c3"])
        page = self.open("depthwise")
        self.assertEqual(drawn(), ["Blocks", "Slide", "Packed weights"])
        self.assertEqual(page.script(weights)[:3], ["w0", "w1", "w2"])

    def test_has_kernels_that_pack_weights(self):
        page = self.open("fused")
        titles = [each.text for each in page.all("#pane-code h3")]
        self.assertRegex(titles[0], "^nest 0: microkernel")
        self.assertTrue(any(re.match("nest 0: pack weights", title) for title in titles), titles)
        code = next(index for index, title in enumerate(titles) if "pack weights" in title)
        page.script("document.querySelector(`#pane-code .line[data-code='${arguments[0]}'][data-keys~='op:0']`).click()", code)
        self.assertNotEqual(page.one("#origin .o-section").text, "")
        self.assertIn("conv_integer", page.one("#pane-function .near").text)

    # ---- what lights up

    def test_pointing_lights_counterparts(self):
        page = self.open("normalize")
        page.point_at("#pane-lanes .line:not(.constant)")
        lane = page.one("#pane-lanes .line.lit").text
        self.assertGreater(page.count("#pane-code .lit"), 0)
        self.assertGreater(page.count("#pane-function .near"), 0)
        self.assertIn(lane[:10], page.one("#pane-lanes .line.lit").text)
        page.point_at("#pane-function .line[data-keys^='op:']")
        self.assertGreater(page.count("#pane-lanes .lit"), 0)
        self.assertGreater(page.count("#pane-code .lit"), 0)
        self.assertLess(page.count("#pane-code .lit"), page.count("#pane-code .line"))
        page.point_at("#pane-code .line.lit")
        self.assertEqual(page.count("#pane-lanes .lit"), 1)
        self.assertGreater(page.count("#pane-function .near"), 0)
        self.assertNotEqual(page.one("#origin .o-lane").text, "")
        page.point_at("#pane-code .line")  # the entry, which is of no operation
        self.assertEqual(page.one("#origin .o-section").text, "entry")
        self.assertEqual(page.count("#pane-function .near, #pane-function .lit"), 0)

    def test_every_operation_has_counterparts(self):
        for name in ("normalize", "dequantize", "split", "fused"):
            page = self.open(name)
            operations = page.count("#pane-function .line[data-keys^='op:']")
            self.assertGreater(operations, 0)
            for index in range(operations):
                with self.subTest(page=name, operation=index):
                    page.script("""document.querySelectorAll("#pane-function .line[data-keys^='op:']")[arguments[0]]
                        .dispatchEvent(new PointerEvent('pointerover', {bubbles: true}))""", index)
                    self.assertGreater(page.count("#pane-code .lit"), 0)

    def test_says_what_has_no_code(self):
        page = self.open("quantize")
        lines = page.all("#pane-function .line[data-keys^='op:']")
        for line in lines:
            page.script("arguments[0].dispatchEvent(new PointerEvent('pointerover', {bubbles: true}))", line)
            self.assertEqual("needs no instruction" in page.one("#origin").text, " clamp " in line.text, line.text)
        self.assertTrue(any(" clamp " in line.text for line in lines))

    def test_written_operations_light_what_they_became(self):
        page = self.open("quantize")
        self.assertEqual([each.text for each in page.all("#pane-function h3")], ["as it was written", "canonical form"])
        page.point_at("#pane-function .line[data-keys*='written:0']")
        self.assertIn("quantize_linear", page.one("#pane-function .line.lit").text)
        operations = page.count("#pane-function .line[data-keys^='op:']:not([data-keys*='written:'])")
        self.assertGreater(operations, 3)
        self.assertEqual(page.count("#pane-function .lit"), 1 + operations)
        self.assertGreater(page.count("#pane-code .lit"), 10)
        self.assertIn(f"{operations} operations in canonical form", page.one("#origin").text)
        page.point_at("#pane-function .line[data-keys='op:0']")
        self.assertEqual(page.count("#pane-function .lit"), 2)

    def test_clicking_keeps_and_shows_in_every_pane(self):
        page = self.open("fused")
        page.point_at("#pane-function .line[data-keys='op:2']").click()
        self.assertEqual(page.count(".kept"), 1)
        self.assertTrue(page.script("""
            const list = document.querySelector('#pane-code-lines'), line = list.querySelector('.lit');
            return line.offsetTop >= list.scrollTop && line.offsetTop < list.scrollTop + list.clientHeight"""))
        page.keys(Keys.ESCAPE)
        self.assertEqual(page.count(".kept, .lit"), 0)

    def test_loops_lead_to_their_code(self):
        page = self.open("normalize")
        page.point_at("#pane-nest .loop").click()
        first = page.script("""
            const loop = document.querySelector('#pane-nest .loop'), list = document.querySelector('#pane-code-lines');
            const line = [...list.querySelectorAll('.line')][Number(loop.dataset.goto)];
            return [line.classList.contains('lit'), line.offsetTop - list.scrollTop]""")
        self.assertTrue(first[0])
        self.assertGreaterEqual(first[1], 0)

    def test_labels_and_drawings_are_links(self):
        page = self.open("fused")
        jump = page.one("#pane-code a.w-label")
        self.assertTrue(page.script("return document.querySelector(arguments[0].getAttribute('href')) !== null", jump))
        dead = page.script("""return [...document.querySelectorAll('a')].filter((link) =>
            !link.getAttribute('href').startsWith('#') || document.querySelector(link.getAttribute('href')) === null).length""")
        self.assertEqual(dead, 0)
        page.script("arguments[0].click()", jump)
        self.assertTrue(page.script("""
            const list = document.querySelector('#pane-code-lines').getBoundingClientRect();
            const label = document.querySelector(':target').getBoundingClientRect();
            return label.top >= list.top - 1 && label.bottom <= list.bottom + 1"""))
        page.one("a[href='#convolution']").click()
        self.assertLess(page.script("return document.querySelector('#convolution').getBoundingClientRect().top"), 850)

    # ---- tabs and keys

    def test_tiers_are_tabs(self):
        page = self.open("normalize")
        tabs = [tab.text for tab in page.all("#tiers [role=tab]")]
        self.assertEqual(tabs, ["avx2", "avx2_vnni", "avx512", "avx512_vnni", "avx512_vbmi", "avx512_fp16", "amx"])
        self.assertEqual(page.one("#tiers [aria-selected=true]").text, "avx512_vbmi")
        page.all("#tiers button")[0].click()
        self.assertEqual(page.one("#tiers [aria-selected=true]").text, "avx2")
        self.assertIn("ymm", page.one("#pane-code").text)
        self.assertNotIn("zmm", page.one("#pane-code").text)
        page.all("#tiers button")[0].send_keys(Keys.ARROW_RIGHT)
        self.assertEqual(page.one("#tiers [aria-selected=true]").text, "avx2_vnni")
        self.assertEqual(page.script("return document.activeElement.textContent"), "avx2_vnni")

    def test_functions_are_a_choice(self):
        source = pathlib.Path(self.folder.name) / "both.castor"
        source.write_text(FUSED + DEPTHWISE)
        self.make("both", source, "avx2")
        page = self.open("both")
        del self.pages["both"]
        self.assertEqual([option.text for option in page.all("#function option")], ["@fused", "@depthwise"])
        self.assertIn("@fused", page.one("#pane-function").text)
        page.all("#function option")[1].click()
        self.assertIn("@depthwise", page.one("#pane-function").text)
        self.assertEqual(page.one("#tiers [aria-selected=true]").text, "avx2")
        self.assertEqual(page.console(), [])

    def test_is_used_by_keys_alone(self):
        page = self.open("normalize")
        page.script("document.querySelector('#pane-function-lines').focus()")
        page.keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
        self.assertEqual(page.count("#pane-function .lit"), 1)
        page.keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
        self.assertIsNotNone(page.script("return document.activeElement.closest('#pane-lanes')"))
        page.keys(Keys.ARROW_RIGHT)
        self.assertIsNotNone(page.script("return document.activeElement.closest('#pane-code')"))
        page.keys(Keys.ENTER)
        self.assertEqual(page.count("#pane-code .kept"), 1)
        page.keys(Keys.ESCAPE)
        self.assertEqual(page.count(".kept"), 0)
        page.keys("b")
        self.assertTrue(page.one("#pane-code .bytes").is_displayed())
        page.keys("[")
        self.assertEqual(page.one("#tiers [aria-selected=true]").text, "avx512_vnni")
        page.keys("?")
        self.assertTrue(page.one("#help").is_displayed())
        reached = set()
        for _ in range(40):
            page.keys(Keys.TAB)
            reached.add(page.script("return document.activeElement.id || document.activeElement.getAttribute('role')"))
        self.assertLessEqual({"theme", "help-button", "pane-function-lines", "pane-code-lines", "tab"}, reached)

    def test_narrow_screens_show_a_pane_at_a_time(self):
        page = self.open("normalize", "narrow")
        shown = lambda: [pane.get_attribute("id") for pane in page.all(".pane") if pane.is_displayed()]
        self.assertEqual(shown(), ["pane-code"])
        for index, name in enumerate(("pane-function", "pane-nest", "pane-lanes", "pane-code")):
            page.all("#pane-tabs button")[index].click()
            self.assertEqual(shown(), [name])
            self.save(page, f"normalize-narrow-{name}")

    # ---- how it looks

    def test_nothing_is_wider_than_the_screen(self):
        for name in self.pages:
            for width, page in self.for_each_width(name):
                self.assertLessEqual(page.script("return document.documentElement.scrollWidth"), WIDTHS[width][0])
                small = page.script("""
                    return [...document.querySelectorAll('.line, .facts, figcaption, td, th')].filter((each) =>
                        each.offsetParent !== null && parseFloat(getComputedStyle(each).fontSize) < 11).length""")
                self.assertEqual(small, 0, "text of less than 11 pixels")
                self.save(page, f"{name}-{width}")
                if page.count("#convolution svg"):
                    page.script("document.querySelector('#convolution').scrollIntoView()")
                    self.save(page, f"{name}-{width}-convolution")

    def contrast(self, page, selector):
        """The contrast of a text with its pane, as WCAG 2 defines it."""
        return page.script("""
            const luminance = (text) => {
              const [r, g, b] = text.match(/\\d+/g).slice(0, 3).map((each) => each / 255)
                .map((each) => each <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
              return 0.2126 * r + 0.7152 * g + 0.0722 * b;
            };
            const each = document.querySelector(arguments[0]);
            const pane = each.closest('.pane') ?? document.body;
            const [high, low] = [luminance(getComputedStyle(each).color),
              luminance(getComputedStyle(pane).backgroundColor)].sort((a, b) => b - a);
            return (high + 0.05) / (low + 0.05)""", selector)

    def test_is_dark_and_light(self):
        for width in WIDTHS:
            backgrounds = []
            for scheme in ("light", "dark"):
                self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                             {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
                page = self.open("fused", width)
                background = lambda: page.script("return getComputedStyle(document.body).backgroundColor")
                backgrounds.append(background())
                for selector in ("#pane-code .line", "#pane-code .offset", "#pane-code .w-register",
                                 "#pane-function .w-name", "#pane-function .w-type", "#pane-lanes .w-number"):
                    self.assertGreaterEqual(self.contrast(page, selector), 4.5, f"{selector}, {scheme}")
                page.script("""document.querySelector("#pane-function .line[data-keys='op:2']").click()""")
                self.save(page, f"fused-{width}-{scheme}")
                page.script("document.querySelector('#convolution').scrollIntoView()")
                self.save(page, f"fused-{width}-{scheme}-convolution")
                page.one("#theme").click()
                self.assertNotEqual(background(), backgrounds[-1], "the button turns it")
                page.keys("d")
                self.assertEqual(background(), backgrounds[-1], "so does the key")
            self.assertNotEqual(*backgrounds)
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})

    # ---- hostile text, and time

    def test_texts_are_no_markup(self):
        source = pathlib.Path(self.folder.name) / HOSTILE_NAME.replace("/", "\u2215")
        source.write_text("// </script><script>alert(1)</script>\n" + FUSED)
        self.make("hostile", source, "avx2")
        page = self.open("hostile")
        del self.pages["hostile"]
        self.assertEqual(page.one("#file").text, source.name)
        self.assertEqual(page.count("img"), 0)
        self.assertEqual(page.count("script"), 2)
        self.assertEqual(page.console(), [])

    def test_the_largest_kernel_opens_in_time(self):
        """From the start of navigation to the load event and the first picture, whichever is later."""
        shown, complete = [], []
        for _ in range(5):
            page = Page(self.browser, self.pages["largest"], "wide")
            heading = page.one("#pane-code h3").text
            WebDriverWait(self.browser, 20).until(lambda _: page.script(FIRST_PICTURE) is not None)
            shown.append(page.script(FIRST_PICTURE))
            self.open("largest")
            complete.append(page.script("return performance.getEntriesByName('complete')[0].startTime / 1000"))
        bytes_of_code, instructions, constants = (int(each.replace(",", "")) for each in re.search(
            r"([\d,]+) B in ([\d,]+) instructions, ([\d,]+) B of constants", heading).groups())
        rows = re.findall(r"^ *(\d+) +(\d+) +\d+ [0-9a-f]{8} ", KERNELS.read_text(), re.M)
        largest, its_instructions = max((int(size), int(count)) for size, count in rows)
        self.assertEqual(instructions, its_instructions, "this is no longer the largest golden kernel")
        self.assertLessEqual(abs(largest - bytes_of_code - constants), 64, "but for what aligns the constants")
        self.assertGreaterEqual(page.count("#pane-code .line"), instructions)
        print(f"largest golden kernel, {heading.splitlines()[-1]}: page of {self.pages['largest'].stat().st_size / 1e6:.1f} MB, "
              f"shown after {statistics.median(shown):.2f} s, complete after {statistics.median(complete):.2f} s "
              f"(medians of {len(shown)} loads; the slowest {max(shown):.2f} s and {max(complete):.2f} s)")
        self.assertLess(statistics.median(shown), MAX_SECONDS)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("castor", type=pathlib.Path)
    parser.add_argument("examples", type=pathlib.Path)
    parser.add_argument("--screenshots", type=pathlib.Path)
    parser.add_argument("--only", help="names of tests to run, by part of the name")
    arguments = parser.parse_args()
    ExplorerTest.castor = arguments.castor
    ExplorerTest.examples = arguments.examples
    ExplorerTest.screenshots = arguments.screenshots
    if arguments.screenshots is not None:
        arguments.screenshots.mkdir(parents=True, exist_ok=True)
    unittest.main(argv=[sys.argv[0]] + (["-k", arguments.only] if arguments.only else []))
