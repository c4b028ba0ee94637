import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readFile } from 'node:fs/promises';
import { readBody } from '../../lib/async/read-body.ts';
import type { Clock } from '../../lib/clock.ts';
import { hasErrno, isTemperError, messageOf, TemperError } from '../../lib/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';
import { fillAnswer, noMatchError } from './answer.ts';
import { conversationKey, type ReplayConversation } from './conversation.ts';
import { firstMatch, RuleUseCounter } from './match.ts';
import { readReplayScript } from './script/read-script.ts';
import type { ReplayAnswer, ReplayScript } from './script/script.ts';
import { sendAnswer } from './send.ts';
import type { ReplayWireFormat } from './wire/wire.ts';
import { anthropicWire } from './wire/anthropic.ts';
import { chatWire } from './wire/openai-chat.ts';
import { responsesWire } from './wire/openai-responses.ts';

interface RecordedRequest {
  path: string;
  conversation: ReplayConversation;
  body: JsonObject;
}

export interface ReplayServer extends AsyncDisposable {
  /** Without a path; the OpenAI SDK expects `${url}/v1`, the Anthropic SDK `url`. */
  readonly url: string;
  /** The latest requests, oldest first. */
  readonly requests: readonly RecordedRequest[];
}

export interface ReplayOptions {
  /** A script, or the path of a YAML file with one. */
  script: ReplayScript | string;
  /** Absent: the loopback interface. */
  host?: string;
  /** 0 or absent: any free port. */
  port?: number;
  clock: Clock;
}

const MAX_RECORDED_REQUESTS = 500;
const MAX_REQUEST_BYTES = 32 * 1_024 * 1_024;

const WIRES: ReadonlyMap<string, ReplayWireFormat> = new Map([
  ['/v1/chat/completions', chatWire],
  ['/v1/responses', responsesWire],
  ['/v1/messages', anthropicWire],
]);

/** Serves the answers of a script in the providers' own wire formats. Any key is accepted. */
export async function startReplay(options: ReplayOptions): Promise<ReplayServer> {
  const script = typeof options.script === 'string' ? await loadScript(options.script) : options.script;
  const requests: RecordedRequest[] = [];
  const uses = new RuleUseCounter();
  const closing = new AbortController();
  const server = createServer((request, response) => {
    answerRequest(request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  const answerRequest = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const wire = WIRES.get(new URL(request.url ?? '/', 'http://replay').pathname);
    if (!wire || request.method !== 'POST')
      return sendError(response, 404, chatWire, 'not_found_error', 'no such path');
    try {
      const body = await jsonBody(request);
      const conversation = wire.read(body);
      requests.push({ path: request.url ?? '', conversation, body });
      if (requests.length > MAX_RECORDED_REQUESTS) requests.shift();
      const answer = chooseAnswer(script, conversation, uses);
      const signal = closedSignal(response, closing.signal);
      if (answer.delayMilliseconds !== undefined) await options.clock.sleep(answer.delayMilliseconds, signal);
      if (answer.error) return sendScriptedError(response, wire, answer.error);
      await sendAnswer(response, wire, answer, fillAnswer(answer, conversation), conversation.stream, {
        clock: options.clock,
        signal,
      });
    } catch (error) {
      if (response.destroyed || response.headersSent) return;
      const code = isTemperError(error) ? error.code : 'invalid_request_error';
      sendError(response, 400, wire, code, messageOf(error));
    }
  };
  const url = await listen(server, options.host ?? '127.0.0.1', options.port ?? 0);
  return {
    url,
    requests,
    async [Symbol.asyncDispose]() {
      closing.abort();
      server.closeAllConnections();
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
    },
  };
}

async function loadScript(path: string): Promise<ReplayScript> {
  try {
    return readReplayScript(await readFile(path, 'utf8'), path);
  } catch (error) {
    if (isTemperError(error)) throw error;
    const reason = hasErrno(error, 'ENOENT') ? 'does not exist' : `cannot be read: ${messageOf(error)}`;
    throw new TemperError('TEMPER_REPLAY_SCRIPT_INVALID', `the replay script ${path} ${reason}`, { cause: error });
  }
}

function chooseAnswer(script: ReplayScript, conversation: ReplayConversation, uses: RuleUseCounter): ReplayAnswer {
  const key = conversationKey(conversation);
  const index = firstMatch(script.rules, conversation, (rule) => uses.of(key, rule));
  const rule = index === undefined ? undefined : script.rules[index];
  if (index === undefined || !rule) throw noMatchError(conversation);
  uses.count(key, index);
  return rule.answer;
}

function closedSignal(response: ServerResponse, closing: AbortSignal): AbortSignal {
  const closed = new AbortController();
  response.once('close', () => closed.abort());
  return AbortSignal.any([closed.signal, closing]);
}

async function jsonBody(request: IncomingMessage): Promise<JsonObject> {
  const tooLarge = (): TemperError =>
    new TemperError('TEMPER_MODEL_FORMAT', `the request is larger than ${MAX_REQUEST_BYTES} bytes`);
  const body = JSON.parse(await readBody(request, MAX_REQUEST_BYTES, tooLarge)) as Json;
  if (!isJsonObject(body)) throw new TemperError('TEMPER_MODEL_FORMAT', 'the request is not a JSON object');
  return body;
}

function sendError(
  response: ServerResponse,
  status: number,
  wire: ReplayWireFormat,
  type: string,
  message: string,
): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(wire.error(type, message)));
}

function sendScriptedError(
  response: ServerResponse,
  wire: ReplayWireFormat,
  error: NonNullable<ReplayAnswer['error']>,
): void {
  if (error.retryAfter !== undefined) response.setHeader('retry-after', String(error.retryAfter));
  sendError(response, error.status, wire, error.type ?? 'scripted_error', error.message ?? 'scripted error');
}

async function listen(server: Server, host: string, port: number): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  return `http://${host.includes(':') ? `[${host}]` : host}:${(server.address() as AddressInfo).port}`;
}
