"""A real Chromium, and a service in a process of its own. `make test-browser` installs both."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from services import service, small_tagger

# Where `make test-browser` puts the checker of accessibility.
AXE = Path(__file__).parents[2] / "build" / "axe" / "axe_playwright_python" / "axe.min.js"
WAIT = 10


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


@pytest.fixture(scope="session")
def model_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "tags.ldsm"
    small_tagger().save(path)
    return path


@pytest.fixture(scope="session")
def served(model_file):
    with service(model_file, "--port", 0) as process:
        yield process


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for argument in ("--headless=new", "--disable-gpu", "--no-first-run", "--window-size=1280,900"):
        options.add_argument(argument)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium refuses to run as root with it
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    driver.set_script_timeout(30)
    yield driver
    driver.quit()


@pytest.fixture
def page(driver, served):
    page = Page(driver, served.address)
    page.size(1280, 900)
    page.colours("light")
    yield page.open()
    assert page.errors() == []
