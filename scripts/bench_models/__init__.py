"""Well-known networks with seeded random weights, for benchmarks: the nodes are those of the usual ONNX exports, batch 1, float32.

    PYTHONPATH=scripts python -m bench_models resnet18 vgg16 -o build/bench_models

`MODELS` contains the networks by name: `MODELS[name]().model(seed)` is the ONNX model, `.inputs(seed)` a sample of its inputs,
`.parameters` the number of its weights."""

import functools

from bench_models.arcface import arcface_resnet100
from bench_models.bert import bert_base_qa
from bench_models.ferplus import emotion_ferplus
from bench_models.light import LightModel, light_names
from bench_models.tinyyolov2 import tinyyolov2
from bench_models.torchvision import mobilenetv2, resnet18, vgg16

_BUILT = [resnet18, mobilenetv2, vgg16, tinyyolov2, arcface_resnet100, emotion_ferplus, bert_base_qa]

MODELS = {build.__name__: build for build in _BUILT} | {name: functools.partial(LightModel, name) for name in light_names()}
