import type { Clock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import type { AdapterOptions } from './adapter/adapter.ts';
import { anthropicModel } from './anthropic/adapter.ts';
import { withCircuitBreaker, type CircuitBreakerOptions } from './resilience/circuit-breaker.ts';
import { keySource } from './key-source.ts';
import { openaiChatModel } from './openai-chat/adapter.ts';
import { openaiResponsesModel } from './openai-responses/adapter.ts';
import type { Model, TokenUsage } from './port.ts';
import { costInMicros, DEFAULT_PRICE } from './price.ts';
import { withRetries, type RetryOptions } from './resilience/retry.ts';
import type { AnswerLimits } from './adapter/guarded-fetch.ts';

export type ProviderType = 'openai' | 'openai-responses' | 'anthropic' | 'openai-compatible';

export interface ModelConfig {
  name: string;
  /** Tokens of input and output together. */
  contextWindow?: number;
  /** US dollars for one million tokens. */
  inputPrice?: number;
  outputPrice?: number;
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
  /** The `provider/model` of the alias `default/default`. */
  default?: string;
}

export interface ModelsDeps {
  clock: Clock;
  random: () => number;
  /** Looked up for `keyEnvironment`. */
  environment: Readonly<Record<string, string | undefined>>;
  limits?: Partial<AnswerLimits>;
  retry?: Omit<RetryOptions, 'clock' | 'random'>;
  circuit?: Omit<CircuitBreakerOptions, 'clock'>;
}

const DEFAULT_NAME = 'default/default';
const OPENAI_URL = 'https://api.openai.com/v1';
const ANTHROPIC_URL = 'https://api.anthropic.com';

/**
 * One Model for all configured providers, routed by the part of `request.model` before the first slash. Each provider has its own
 * retries and circuit breaker. Calls throw TEMPER_MODEL_UNAVAILABLE for a provider that is not configured.
 */
export function createModels(config: ModelsConfig, deps: ModelsDeps): Model {
  const providers = new Map<string, Model>();
  for (const provider of config.providers) {
    if (providers.has(provider.name))
      throw new TemperError('TEMPER_MANIFEST_INVALID', `provider "${provider.name}" is configured twice`);
    const retried = withRetries(adapterFor(provider, deps), { ...deps.retry, clock: deps.clock, random: deps.random });
    providers.set(provider.name, withCircuitBreaker(retried, provider.name, { ...deps.circuit, clock: deps.clock }));
  }
  const route = (name: string): Model => {
    const model = providers.get(name.slice(0, Math.max(0, name.indexOf('/'))));
    if (!model) throw unknownProvider(name, config);
    return model;
  };
  return {
    async *stream(request, op) {
      const model = resolveModelName(config, request.model);
      yield* route(model).stream({ ...request, model }, op);
    },
    async embed(texts, op) {
      const provider = config.providers.find((candidate) => candidate.embeddingModel !== undefined);
      if (!provider)
        throw new TemperError('TEMPER_MODEL_NOT_FOUND', 'no provider has an embeddingModel; set it for a provider');
      return route(`${provider.name}/`).embed(texts, op);
    },
  };
}

/** The name itself, or the configured default for `default/default`. */
function resolveModelName(config: ModelsConfig, name: string): string {
  return name === DEFAULT_NAME && config.default !== undefined ? config.default : name;
}

/** The configuration of a model; undefined for a model that is not listed. */
export function modelConfigOf(config: ModelsConfig, name: string): ModelConfig | undefined {
  const full = resolveModelName(config, name);
  const slash = full.indexOf('/');
  const provider = config.providers.find((candidate) => candidate.name === full.slice(0, slash));
  return provider?.models?.find((model) => model.name === full.slice(slash + 1));
}

/** Cost of an answer of the model, in millionths of a dollar. */
export function priceOf(
  config: ModelsConfig,
  name: string,
  usage: Pick<TokenUsage, 'inputTokens' | 'outputTokens'>,
): number {
  const known = modelConfigOf(config, name);
  const { inputPrice = DEFAULT_PRICE.inputPrice, outputPrice = DEFAULT_PRICE.outputPrice } = known ?? {};
  return costInMicros({ inputPrice, outputPrice }, usage);
}

function adapterFor(provider: ProviderConfig, deps: ModelsDeps): Model {
  const { name, baseUrl, embeddingModel } = provider;
  const shared: AdapterOptions = { provider: name, key: keySource(provider, deps.environment), clock: deps.clock };
  if (deps.limits) shared.limits = deps.limits;
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
