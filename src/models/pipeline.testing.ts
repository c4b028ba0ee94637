import { metering, type MeteringDeps } from './metering.ts';
import { resolveModel } from './named-models.ts';
import { compose, type ModelPipeline, type ResolvedModel, withNames } from './pipeline.ts';
import type { Model } from './port.ts';

/** A resolved model with the default price. */
export function aModel(name: string): ResolvedModel {
  return resolveModel({ providers: [], aliases: {} }, name);
}

/** A model stub as the innermost part of a pipeline. */
function pipelineOver(stub: Model): ModelPipeline {
  return {
    stream: (request, op) => stub.stream({ ...request, model: request.model.id }, op),
    embed: (texts, op) => stub.embed(texts, op),
  };
}

/** A model stub whose calls are charged. */
export function meteredStub(stub: Model, deps: MeteringDeps): Model {
  return withNames(compose(pipelineOver(stub), [metering(deps)]), aModel);
}
