import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { systemClock } from '../../lib/clock.ts';
import { isTemperError, messageOf, TemperError } from '../../lib/errors.ts';
import { isJsonObject, member, type Json } from '../../lib/json.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { ModelRequest, ToolSpec } from '../../models/port.ts';
import { createModels } from '../../models/named-models.ts';
import type { ProviderConfig, ProviderType } from '../../models/providers.ts';
import { EXIT, writeJsonLine, type CliIo } from '../io.ts';

export interface ModelProbeOptions {
  type: ProviderType;
  /** Default: the vendor's own URL. */
  baseUrl?: string;
  model: string;
  message: string;
  system?: string;
  /** Path of a JSON file: a list of `{name, description, inputSchema}`. */
  tools?: string;
  maxOutputTokens?: number;
  temperature?: number;
  responseFormat?: 'json';
  /** Environment variable with the API key; default: the vendor's usual one. */
  keyEnvironment?: string;
  timeoutMilliseconds?: number;
}

const PROVIDER = 'probe';

/** Sends one request and prints the events of the response as JSON lines. Exit 0: the response is complete; 1: the request failed. */
export async function modelProbe(options: ModelProbeOptions, io: CliIo): Promise<number> {
  try {
    const request = await requestOf(options, io.cwd);
    const models = createModels(
      { providers: [providerOf(options)] },
      { clock: systemClock, random: Math.random, environment: io.environment, retry: { maxAttempts: 1 } },
    );
    const deadline = systemClock.monotonic() + (options.timeoutMilliseconds ?? 120_000);
    const op: CallOptions = { signal: io.signal, deadline, key: PROVIDER };
    for await (const event of models.stream(request, op)) writeJsonLine(io, event as unknown as Json);
    return EXIT.ok;
  } catch (error) {
    if (!isTemperError(error)) throw error;
    writeJsonLine(io, { type: 'error', code: error.code, message: error.message, retry: error.retry });
    return error.code === 'TEMPER_USAGE' ? EXIT.usage : EXIT.refused;
  }
}

function providerOf(options: ModelProbeOptions): ProviderConfig {
  const { type, baseUrl } = options;
  const defaultVariable = type === 'anthropic' ? 'ANTHROPIC_API_KEY' : 'OPENAI_API_KEY';
  const provider: ProviderConfig = { name: PROVIDER, type };
  if (baseUrl !== undefined) provider.baseUrl = baseUrl;
  // The vendor's key is sent only to the vendor. Another base URL gets a key only from --key-environment.
  const keyEnvironment = options.keyEnvironment ?? (baseUrl === undefined ? defaultVariable : undefined);
  if (keyEnvironment !== undefined) provider.keyEnvironment = keyEnvironment;
  return provider;
}

async function requestOf(options: ModelProbeOptions, cwd: string): Promise<ModelRequest> {
  const request: ModelRequest = {
    model: `${PROVIDER}/${options.model}`,
    system: options.system ?? '',
    messages: [{ role: 'user', text: options.message }],
    tools: options.tools === undefined ? [] : await toolsIn(resolve(cwd, options.tools)),
    maxOutputTokens: options.maxOutputTokens ?? 1_024,
  };
  if (options.temperature !== undefined) request.temperature = options.temperature;
  if (options.responseFormat !== undefined) request.responseFormat = options.responseFormat;
  return request;
}

async function toolsIn(path: string): Promise<ToolSpec[]> {
  let value: Json;
  try {
    value = JSON.parse(await readFile(path, 'utf8')) as Json;
  } catch (error) {
    throw new TemperError('TEMPER_USAGE', `--tools ${path}: ${messageOf(error)}`);
  }
  if (!Array.isArray(value) || !value.every(isToolSpec))
    throw new TemperError('TEMPER_USAGE', `--tools ${path} must be a list of {name, description, inputSchema}`);
  return value as unknown as ToolSpec[];
}

function isToolSpec(value: Json): boolean {
  return (
    typeof member(value, 'name') === 'string' &&
    typeof member(value, 'description') === 'string' &&
    isJsonObject(member(value, 'inputSchema'))
  );
}
