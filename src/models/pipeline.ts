import type { CallOptions } from '../lib/call-options.ts';
import type { Model, ModelEvent, ModelInput } from './port.ts';
import type { ModelPrice } from './price.ts';

/** A model name, resolved against the configuration once per call. */
export interface ResolvedModel {
  /** `provider/model`. */
  readonly id: string;
  readonly provider: string;
  /** The name at the provider. */
  readonly model: string;
  readonly price: ModelPrice;
  /** Context window. */
  readonly contextTokens: number;
}

export interface ResolvedRequest extends ModelInput {
  model: ResolvedModel;
}

/** The model port behind the resolution of names; errors and events are those of `Model`. */
export interface ModelPipeline {
  stream(request: ResolvedRequest, op: CallOptions): AsyncIterable<ModelEvent>;
  embed(texts: string[], op: CallOptions): Promise<Float32Array[]>;
}

/** Adds one aspect to each call. */
export type ModelLayer = (inner: ModelPipeline) => ModelPipeline;

/** The adapter inside the layers: the first layer is the innermost, the last one sees a call first. */
export function compose(adapter: ModelPipeline, layers: readonly ModelLayer[]): ModelPipeline {
  return layers.reduce((inner, layer) => layer(inner), adapter);
}

/** The entry of a pipeline: the only place that resolves the name of a request. */
export function withNames(pipeline: ModelPipeline, resolve: (name: string) => ResolvedModel): Model {
  return {
    stream: (request, op) => pipeline.stream({ ...request, model: resolve(request.model) }, op),
    embed: (texts, op) => pipeline.embed(texts, op),
  };
}
