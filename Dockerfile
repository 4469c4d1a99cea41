FROM python:3.11-slim

# Hosts such as Hugging Face Spaces run the container as user 1000.
RUN useradd --create-home --uid 1000 user
USER user
WORKDIR /home/user/app

ENV HOME=/home/user \
    PATH=/home/user/.local/bin:$PATH \
    HF_HOME=/home/user/.cache/huggingface \
    SIDECAR_CACHE=/home/user/.cache/speculative-sidecar \
    GRADIO_SERVER_NAME=0.0.0.0 \
    GRADIO_SERVER_PORT=7860 \
    GRADIO_ANALYTICS_ENABLED=False \
    PYTHONUNBUFFERED=1

# Give an index with CPU builds of torch here to get a much smaller image.
ARG PIP_EXTRA_INDEX_URL=""

COPY --chown=user requirements.txt .
RUN pip install --user --no-cache-dir -r requirements.txt
COPY --chown=user . .
RUN mkdir -p "$HF_HOME" "$SIDECAR_CACHE"

EXPOSE 7860

# Answers while the models load; fails when they could not be loaded. No proxy is asked.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.build_opener(r.ProxyHandler({})).open('http://127.0.0.1:7860/healthz', timeout=4)"]

CMD ["python", "app.py"]
