"""The page of `ldsm serve` in a browser, asked as a person would: by what is on it."""

from pathlib import Path

from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

# Where `make test-browser` puts the checker of accessibility.
AXE = Path(__file__).parents[2] / "build" / "axe" / "axe_playwright_python" / "axe.min.js"
WAIT = 120


class Page:
    """The page in a browser, asked as a person would: by what is on it."""

    def __init__(self, driver, address):
        self.driver, self.address = driver, address

    def open(self, path=""):
        self.driver.get(self.address + path)
        return self

    def size(self, width, height):
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )

    def colours(self, scheme):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def one(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def texts(self, selector):
        """The texts of visible elements, as they are at one time."""
        return self.script(
            "return [...document.querySelectorAll(arguments[0])]"
            ".filter((one) => one.checkVisibility()).map((one) => one.innerText.trim())",
            selector,
        )

    def choose(self, name, value):
        """Set a slider or a list."""
        self.script(
            "const one = document.getElementById(arguments[0]); one.value = arguments[1];"
            "for (const type of ['input', 'change']) one.dispatchEvent(new Event(type))",
            name,
            value,
        )

    def until(self, condition, seconds=WAIT):
        """Wait until the condition holds; what it gave."""
        wait = WebDriverWait(
            self.driver,
            seconds,
            poll_frequency=0.05,
            ignored_exceptions=[StaleElementReferenceException],
        )
        return wait.until(lambda _: condition())

    def script(self, code, *values):
        return self.driver.execute_script(code, *values)

    def type(self, text):
        """Write into the text, and wait for its tags."""
        self.one("#text").send_keys(text)
        return self.until(lambda: self.texts("#tags .name"))

    def tag(self, name):
        """The row of a tag."""
        return self.until(
            lambda: next(
                (
                    r
                    for r in self.all(".tags > li")
                    if r.find_element(By.CSS_SELECTOR, ".name").text == name
                ),
                None,
            )
        )

    def explain(self, name):
        self.tag(name).find_element(By.CSS_SELECTOR, "button.tag").click()
        return self.until(lambda: self.texts(".why .verdict"))[0]

    def errors(self):
        """What the browser has complained about since it was last asked."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def violations(self):
        """Serious findings of axe-core on the page as it is."""
        self.script(AXE.read_text("utf-8"))
        found = self.driver.execute_async_script(
            "const done = arguments[0]; axe.run(document).then((r) => done(r.violations))"
        )
        return [
            (one["id"], [node["html"] for node in one["nodes"]])
            for one in found
            if one["impact"] in ("serious", "critical")
        ]
