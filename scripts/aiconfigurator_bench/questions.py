"""Twenty questions on equal workers that aiconfigurator answers from measured tables."""

from __future__ import annotations

from dataclasses import dataclass

LLAMA_8, LLAMA_70 = "meta-llama/Meta-Llama-3.1-8B", "meta-llama/Meta-Llama-3.1-70B"
QWEN_32, QWEN_30 = "Qwen/Qwen3-32B", "Qwen/Qwen3-30B-A3B"
DEVICES = {"a100_sxm": "A100-80", "h100_sxm": "H100", "h200_sxm": "H200", "b200_sxm": "B200"}


@dataclass(frozen=True)
class Question:
    """How to serve a model on GPUs of one system, with prompts and answers of these tokens, within limits.

    Parameters
    ----------
    model, system
        As aiconfigurator names them.
    gpus
        How many there are.
    prompt, generate
        Tokens of a prompt, and tokens generated after it.
    ttft, tpot
        Milliseconds until the first token, and for each further one, at most.
    """

    model: str
    system: str
    gpus: int
    prompt: int
    generate: int
    ttft: float
    tpot: float

    @property
    def name(self) -> str:
        """The question in a few words."""
        model = self.model.rsplit("/", 1)[1].removeprefix("Meta-")
        limits = f"{self.ttft:g}, {self.tpot:g} ms"
        return f"{model}, {self.gpus} {DEVICES[self.system]}, {self.prompt}+{self.generate}, {limits}"


QUESTIONS = (
    Question(LLAMA_8, "a100_sxm", 8, 1000, 500, 2000, 50),
    Question(LLAMA_8, "a100_sxm", 4, 4000, 500, 3000, 100),
    Question(LLAMA_8, "h100_sxm", 8, 2000, 500, 1000, 50),
    Question(LLAMA_8, "h100_sxm", 2, 4000, 1000, 2000, 30),
    Question(LLAMA_8, "h200_sxm", 8, 1000, 1000, 600, 20),
    Question(LLAMA_8, "b200_sxm", 4, 4000, 500, 600, 30),
    Question(LLAMA_70, "a100_sxm", 8, 2000, 500, 3000, 100),
    Question(LLAMA_70, "a100_sxm", 16, 1000, 500, 2000, 60),
    Question(LLAMA_70, "h100_sxm", 8, 4000, 500, 2000, 50),
    Question(LLAMA_70, "h100_sxm", 16, 1000, 1000, 1000, 40),
    Question(LLAMA_70, "h200_sxm", 8, 4000, 500, 2000, 50),
    Question(LLAMA_70, "h200_sxm", 16, 4000, 500, 600, 50),
    Question(LLAMA_70, "b200_sxm", 8, 4000, 1000, 1000, 30),
    Question(QWEN_32, "a100_sxm", 8, 1000, 200, 2000, 60),
    Question(QWEN_32, "h100_sxm", 8, 4000, 500, 1500, 40),
    Question(QWEN_32, "h100_sxm", 4, 2000, 1000, 2000, 80),
    Question(QWEN_32, "h200_sxm", 8, 2000, 500, 1000, 30),
    Question(QWEN_32, "b200_sxm", 8, 2000, 500, 1000, 50),
    Question(QWEN_30, "h100_sxm", 4, 2000, 500, 1000, 50),
    Question(QWEN_30, "h200_sxm", 4, 4000, 1000, 1000, 30),
)
