"""The published throughput workloads: their names here, in the paper and in the public repository."""

from __future__ import annotations

from dataclasses import dataclass

OPERATORS, LAYERS = "OperatorGraphs", "LayerGraphs"


@dataclass(frozen=True)
class Entry:
    """One published workload.

    Parameters
    ----------
    name
        Its name in the reference files.
    title
        Its name in the paper's tables, within its group.
    folder, stem
        Folder and file in ``throughput-inputs`` of msr-fiddle/dnn-partitioning.
    """

    name: str
    title: str
    folder: str
    stem: str

    @property
    def group(self) -> str:
        """The heading in the paper's tables."""
        granularity = "operator" if self.folder == OPERATORS else "layer"
        return f"{granularity} graphs, {self.name.rpartition('_')[2]}"


CATALOGUE = (
    Entry("bert3_inference", "BERT-3", OPERATORS, "bert_l-3_inference"),
    Entry("bert6_inference", "BERT-6", OPERATORS, "bert_l-6_inference"),
    Entry("bert12_inference", "BERT-12", OPERATORS, "bert_l-12_inference"),
    Entry("resnet50_operator_inference", "ResNet50", OPERATORS, "resnet50_inference"),
    Entry("bert3_training", "BERT-3", OPERATORS, "bert_l-3_training"),
    Entry("bert6_training", "BERT-6", OPERATORS, "bert_l-6_training"),
    Entry("bert12_training", "BERT-12", OPERATORS, "bert_L-12_training"),
    Entry("resnet50_operator_training", "ResNet50", OPERATORS, "resnet50_training"),
    Entry("bert24_inference", "BERT-24", LAYERS, "bert24_inference"),
    Entry("resnet50_layer_inference", "ResNet50", LAYERS, "resnet50_inference"),
    Entry("inceptionv3_inference", "InceptionV3", LAYERS, "inceptionv3_inference"),
    Entry("gnmt_inference", "GNMT", LAYERS, "gnmt_inference"),
    Entry("bert24_training", "BERT-24", LAYERS, "bert24_training"),
    Entry("resnet50_layer_training", "ResNet50", LAYERS, "resnet50_training"),
    Entry("inceptionv3_training", "InceptionV3", LAYERS, "inceptionv3_training"),
    Entry("gnmt_training", "GNMT", LAYERS, "gnmt_training"),
)
