# guieval with vLLM on a machine with NVIDIA GPUs:
#   docker build -t guieval .
#   docker run --gpus all --ipc=host -v "$PWD/runs:/work/runs" -v ~/.cache/huggingface:/root/.cache/huggingface guieval \
#       run --model ui-tars-7b --bench androidcontrol --mode soeval
FROM python:3.12-slim
RUN apt-get update && apt-get install -y --no-install-recommends build-essential && rm -rf /var/lib/apt/lists/*
COPY . /src
RUN pip install --no-cache-dir '/src[vllm,report,hub]' && rm -rf /src
WORKDIR /work
ENTRYPOINT ["guieval"]
