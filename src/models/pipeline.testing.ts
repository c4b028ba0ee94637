import { metering, type MeteringDeps } from './metering.ts';
import { resolveModel } from './named-models.ts';
import type { Ledger } from '../ledger/port.ts';
import { calledBy, compose, type ModelPipeline, type ResolvedModel, withNames } from './pipeline.ts';
import type { Model } from './port.ts';

/** A resolved model with the default price. */
export function aModel(name: string): ResolvedModel {
  return resolveModel({ providers: [], aliases: {} }, name);
}

/** A model stub as the innermost part of a pipeline. Every call counts as sent. */
function pipelineOver(stub: Model): ModelPipeline {
  return {
    stream(request, op) {
      op.meter?.sent();
      return stub.stream({ ...request, model: request.model.id }, op);
    },
    embed: (texts, op) => stub.embed(texts, op),
  };
}

/** A model stub whose calls are charged. */
export function meteredStub(stub: Model, { ledger, ids }: MeteringDeps & { ledger: Ledger }): Model {
  return withNames(compose(pipelineOver(stub), [metering({ ids }), calledBy({ id: 'stub', ledger })]), aModel);
}
