"""Runs two optimizer steps of a small Llama through TRL's SFTTrainer.train() and records every collective of the second."""

import torch
from datasets import Dataset
from trl import SFTConfig, SFTTrainer

import trace_trainer
from recorder import MODEL, SEQUENCE, case, run

FRAMEWORK = "trl"
PACKAGES = ("trl", "transformers", "accelerate", "torch")

CASES = [
    case("shard4_recompute", dict(dp_shard=4), recompute="full", recompute_by="model"),
    case("shard4", dict(dp_shard=4)),
    case("shard4_accumulate", dict(dp_shard=4), grad_accum=2),
    case("replicate2_shard2", dict(dp_replicate=2, dp_shard=2)),
    case("shard2_tp2", dict(dp_shard=2, tp=2), load="fp32"),
]


class NoWords:
    """A tokenizer for data that are token ids already: SFTTrainer asks it for little else than padding."""

    def __new__(cls):
        from tokenizers import Tokenizer, models
        from transformers import PreTrainedTokenizerFast

        words = {f"w{i}": i for i in range(MODEL["vocab_size"] - 2)} | {"<pad>": MODEL["vocab_size"] - 2,
                                                                       "<eos>": MODEL["vocab_size"] - 1}
        return PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel(words, unk_token="<pad>")),
                                       pad_token="<pad>", eos_token="<eos>")


def rows(count):
    for index in range(count):
        generator = torch.Generator().manual_seed(index)
        yield dict(input_ids=torch.randint(0, MODEL["vocab_size"] - 2, (SEQUENCE,), generator=generator).tolist())


def trainer_of(one, folder):
    model = trace_trainer.load(one, folder)
    asked = trace_trainer.arguments(one, folder, SFTConfig, max_length=SEQUENCE,
                                    dataset_kwargs=dict(skip_prepare_dataset=True))
    trace_trainer.like_several_gpus()
    return SFTTrainer(model=model, args=asked, train_dataset=Dataset.from_list(list(rows(64))),
                      processing_class=NoWords())


def traced(one, folder, current):
    return trace_trainer.record(trainer_of, one, folder, current)


if __name__ == "__main__":
    run("trace_trl", __doc__)
