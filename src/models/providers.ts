import type { Clock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import type { AdapterOptions } from './adapter/adapter.ts';
import { anthropicModel } from './anthropic/adapter.ts';
import { CircuitBreaker, type CircuitBreakerOptions, type CircuitState } from './resilience/circuit-breaker.ts';
import { keySource } from './key-source.ts';
import { openaiChatModel } from './openai-chat/adapter.ts';
import { openaiResponsesModel } from './openai-responses/adapter.ts';
import { compose, type ModelPipeline } from './pipeline.ts';
import { retries, type RetryOptions } from './resilience/retry.ts';
import type { AnswerLimits } from './adapter/guarded-fetch.ts';

export type ProviderType = 'openai' | 'openai-responses' | 'anthropic' | 'openai-compatible';

export interface ModelConfig {
  name: string;
  /** Tokens of input and output together. */
  contextWindow?: number;
  /** US dollars for one million tokens. */
  inputPrice?: number;
  outputPrice?: number;
  /** Input from the prompt cache of the provider; default `inputPrice`. */
  cachedInputPrice?: number;
  /** Input that the provider stores in its cache; default `inputPrice`, and 1.25 times as much for `anthropic`. */
  cacheCreationPrice?: number;
}

export interface ProviderConfig {
  /** The part of `provider/model` before the first slash. */
  name: string;
  type: ProviderType;
  /** As the vendor's SDK expects it: with `/v1` for OpenAI formats, without for Anthropic. Required for `openai-compatible`. */
  baseUrl?: string;
  /** Set one of `keyFile` and `keyEnvironment`, or neither for a server without keys. */
  keyFile?: string;
  keyEnvironment?: string;
  models?: ModelConfig[];
  /** For OpenAI formats: the embedding model. */
  embeddingModel?: string;
}

export interface ModelsConfig {
  providers: readonly ProviderConfig[];
}

export interface ModelsDeps {
  clock: Clock;
  random: () => number;
  /** Looked up for `keyEnvironment`. */
  environment: Readonly<Record<string, string | undefined>>;
  limits?: Partial<AnswerLimits>;
  /** Aborted when the process ends. */
  closing?: AbortSignal;
  retry?: Omit<RetryOptions, 'clock' | 'random'>;
  circuit?: Omit<CircuitBreakerOptions, 'clock'>;
}

const DEFAULT_NAME = 'default/default';
const OPENAI_URL = 'https://api.openai.com/v1';
const ANTHROPIC_URL = 'https://api.anthropic.com';

interface OpenProviders {
  pipeline: ModelPipeline;
  /** One entry per provider, in the order of the configuration. */
  circuits: () => CircuitState[];
}

/**
 * One pipeline for all configured providers, and the state of their circuits. Each provider has its own retries and circuit breaker. Calls throw
 * TEMPER_MODEL_UNAVAILABLE for a provider that is not configured.
 */
export function openProviders(config: ModelsConfig, deps: ModelsDeps): OpenProviders {
  const { clock, random } = deps;
  const circuits: CircuitBreaker[] = [];
  const providers = new Map<string, ModelPipeline>();
  for (const provider of config.providers) {
    const { name } = provider;
    if (providers.has(name)) throw new TemperError('TEMPER_MANIFEST_INVALID', `provider "${name}" is configured twice`);
    const circuit = new CircuitBreaker(name, { ...deps.circuit, clock });
    circuits.push(circuit);
    const layers = [retries({ ...deps.retry, clock, random }), circuit.layer];
    providers.set(name, compose(adapterFor(provider, deps), layers));
  }
  const embedding = config.providers.find(({ embeddingModel }) => embeddingModel !== undefined);
  const pipeline: ModelPipeline = {
    async *stream(request, op) {
      const provider = providers.get(request.model.provider);
      if (provider === undefined) throw unknownProvider(request.model.id, config);
      yield* provider.stream(request, op);
    },
    async embed(texts, op) {
      const provider = embedding && providers.get(embedding.name);
      if (provider === undefined)
        throw new TemperError('TEMPER_MODEL_NOT_FOUND', 'no provider has an embeddingModel; set it for a provider');
      return provider.embed(texts, op);
    },
  };
  return { pipeline, circuits: () => circuits.map(({ state }) => state) };
}

function adapterFor(provider: ProviderConfig, deps: ModelsDeps): ModelPipeline {
  const { name, baseUrl, embeddingModel } = provider;
  const shared: AdapterOptions = { provider: name, key: keySource(provider, deps.environment), clock: deps.clock };
  if (deps.limits) shared.limits = deps.limits;
  if (deps.closing) shared.closing = deps.closing;
  const embedding = embeddingModel === undefined ? {} : { embeddingModel };
  if (provider.type === 'anthropic') return anthropicModel({ ...shared, baseUrl: baseUrl ?? ANTHROPIC_URL });
  if (provider.type === 'openai-responses')
    return openaiResponsesModel({ ...shared, ...embedding, baseUrl: baseUrl ?? OPENAI_URL });
  if (provider.type === 'openai')
    return openaiChatModel({ ...shared, ...embedding, baseUrl: baseUrl ?? OPENAI_URL, dialect: 'original' });
  if (baseUrl === undefined)
    throw new TemperError('TEMPER_MANIFEST_INVALID', `provider "${name}" is ${provider.type} and has no baseUrl`);
  return openaiChatModel({ ...shared, ...embedding, baseUrl, dialect: 'compatible' });
}

function unknownProvider(name: string, config: ModelsConfig): TemperError {
  const configured = config.providers.map((provider) => provider.name).join(', ') || 'none';
  const missing =
    name === DEFAULT_NAME ? 'no default model is configured' : `no provider is configured for the model "${name}"`;
  return new TemperError('TEMPER_MODEL_UNAVAILABLE', `${missing}; configured providers: ${configured}`);
}
