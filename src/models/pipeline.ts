import type { Amounts, Ledger } from '../ledger/port.ts';
import type { Model, ModelCallOptions, ModelEvent, ModelInput, TokenUsage } from './port.ts';
import type { ModelPrice } from './price.ts';

/** A model name, resolved against the configuration once per call. */
export interface ResolvedModel {
  /** `provider/model`. */
  readonly id: string;
  readonly provider: string;
  /** The name at the provider. */
  readonly model: string;
  readonly price: ModelPrice;
  /** The price is the default one, because none is configured. */
  readonly unpriced?: true;
  /** Context window. */
  readonly contextTokens: number;
}

export interface ResolvedRequest extends ModelInput {
  model: ResolvedModel;
}

/** The agent that a call is made for. */
export interface ModelCaller {
  /** Unique per agent. Failures are counted per caller, so that the failures of one agent stop no other. */
  readonly id: string;
  /** The accounts that the call is charged to. */
  readonly ledger: Ledger;
  /** Receives what each call is charged, with the model that answered and the key of the call. Not called for a call that costs nothing. */
  readonly onCharged?: (model: ResolvedModel, used: Amounts, key: string) => void;
}

/** Receives the usage of one call from the adapter. */
export interface UsageMeter {
  /** The request is about to be sent; until then the call costs nothing. Called again for each attempt. */
  sent(): void;
  /** The attempt failed with this error. */
  failed(error: unknown): void;
  /** The provider's count. `isComplete`: of the whole answer; otherwise of the part so far. */
  counted(usage: TokenUsage, isComplete: boolean): void;
  /** The reader left early, and the adapter reads on for the provider's count until `done` resolves. */
  unread(done: Promise<void>): void;
}

export interface PipelineOptions extends ModelCallOptions {
  readonly caller?: ModelCaller;
  /** Without a meter the adapter aborts an answer as soon as its reader leaves. */
  readonly meter?: UsageMeter;
}

/** The model port behind the resolution of names; errors and events are those of `Model`. */
export interface ModelPipeline {
  stream(request: ResolvedRequest, op: PipelineOptions): AsyncIterable<ModelEvent>;
  embed(texts: string[], op: PipelineOptions): Promise<Float32Array[]>;
}

/** Adds one aspect to each call. */
export type ModelLayer = (inner: ModelPipeline) => ModelPipeline;

/** The adapter inside the layers: the first layer is the innermost, the last one sees a call first. */
export function compose(adapter: ModelPipeline, layers: readonly ModelLayer[]): ModelPipeline {
  return layers.reduce((inner, layer) => layer(inner), adapter);
}

/** Makes all calls for one agent. */
export function calledBy(caller: ModelCaller): ModelLayer {
  return (inner) => ({
    stream: (request, op) => inner.stream(request, { ...op, caller }),
    embed: (texts, op) => inner.embed(texts, { ...op, caller }),
  });
}

/** The entry of a pipeline: the only place that resolves the name of a request. */
export function withNames(pipeline: ModelPipeline, resolve: (name: string) => ResolvedModel): Model {
  return {
    stream: (request, op) => pipeline.stream({ ...request, model: resolve(request.model) }, op),
    embed: (texts, op) => pipeline.embed(texts, op),
  };
}
