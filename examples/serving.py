"""
Serving
=======

``ldsm serve tags.ldsm`` serves a model over HTTP. This example runs the same application in a
thread, requests the tags of a text, and measures the time per text.
"""

import json
import shutil
import socket
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import uvicorn

from ldsm import LdSMClassifier, TextTagger, datasets
from ldsm.serve import create_app

data = datasets.load_stdlib_docs(min_count=20)
model = Path(tempfile.mkdtemp()) / "stdlib.ldsm"
TextTagger(LdSMClassifier(n_estimators=10, n_jobs=2, random_state=0)).fit(data).save(model)

listener = socket.create_server(("127.0.0.1", 0))  # any free port
server = uvicorn.Server(uvicorn.Config(create_app([model]), log_level="warning"))
thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
thread.start()
address = f"http://127.0.0.1:{listener.getsockname()[1]}/v1/projects/stdlib/suggest-batch?limit=3"

# %%
# A request may contain many texts. The answer has Annif's format.


def suggest(texts):
    body = json.dumps({"documents": [{"text": text} for text in texts]}).encode()
    request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


for tag in suggest(["parse a date and time"])[0]["results"]:
    print(f"{tag['label']}: {tag['score']:.2f}")

# %%
# Texts in one request share its cost.

sizes = [1, 2, 4, 8, 16, 32, 64]
milliseconds = []
for size in sizes:
    taken = []
    for i in range(15):
        start = time.perf_counter()
        suggest(data.texts[i * size : (i + 1) * size])
        taken.append(1000 * (time.perf_counter() - start) / size)
    milliseconds.append(np.median(taken))
server.should_exit = True
thread.join()
shutil.rmtree(model.parent)

fig, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
ax.semilogx(sizes, milliseconds, "o-", base=2)
ax.set_xticks(sizes, sizes)
ax.set(xlabel="texts per request", ylabel="milliseconds per text", ylim=(0, None))
ax.grid(alpha=0.3)
plt.show()
