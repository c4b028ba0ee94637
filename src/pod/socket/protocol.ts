/**
 * The protocol between the two containers of a pod. Each side validates every frame; an invalid frame closes the connection.
 *
 *   sandbox → agent  hello                      first frame of the connection
 *   agent → sandbox  welcome                    the handshake is complete
 *   agent → sandbox  run      id                starts a job
 *     sandbox → agent  call     id, call        a host call of the job; calls are numbered from 1
 *     agent → sandbox  answer   id, call
 *   sandbox → agent  outcome  id                the job ended
 *   agent → sandbox  tool     id                calls a file tool
 *   agent → sandbox  read     id                reads a file
 *     sandbox → agent  found    id              the real location of the file
 *     agent → sandbox  verdict  id              may it be read?
 *   sandbox → agent  result   id                the file tool or the read ended, or the session is open
 *   agent → sandbox  open     id                starts the process of a session, which has this id
 *   agent → sandbox  execute  id, session       runs code in the session
 *     sandbox → agent  invoke   id, call        a call of the code; calls are numbered from 1
 *     agent → sandbox  reply    id, call
 *   sandbox → agent  executed id                the code ended
 *   agent → sandbox  close    id                ends the session with this id
 *   agent → sandbox  start    id                starts a process of the agent program, which has this id; answered by `result`
 *   agent → sandbox  input    id, stream        characters for a stream of the process
 *   sandbox → agent  output   id, stream        characters of a stream of the process
 *   both             taken    id, stream        characters that the reader has taken, so that as many may follow
 *   agent → sandbox  stop     id                kills the process with this id
 *   sandbox → agent  exited   id                the process has ended
 *   agent → sandbox  cancel   id                aborts a job, a tool call, a read or code
 *   agent → sandbox  rest                       the process of the sandbox ends, if its `hello` says that it can rest
 *   launcher → agent resting                    first and only frame: the process starts again when this connection closes
 */
import { isCount, isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';
import { type ForwardedApi, isForwardedApi, type Job, type JobOutcome } from '../../sandbox/port.ts';
import type { ResolvedFile } from '../../tools/host/host-files.ts';
import type {
  RunOutcome,
  SessionAnswer,
  SessionOptions,
  SessionRequest,
  SessionRun,
} from '../../sandbox/session-port.ts';
import {
  parseRunOutcome,
  parseSessionAnswer,
  parseSessionOptions,
  parseSessionRequest,
  parseSessionRun,
} from './session-fields.ts';
import {
  parseProgramExit,
  parseStreamTaken,
  parseStreamText,
  type ProgramExit,
  type StreamTaken,
  type StreamText,
} from './program-fields.ts';
import { type SocketResult, parseResult, parseFoundFile, parseJob, parseOutcome } from './frame-fields.ts';

export const PROTOCOL_VERSION = 1;

/** Frames from the agent container. `id` identifies a request; `call` numbers the host calls of a job. */
export type AgentFrame =
  | { type: 'welcome'; version: number }
  | { type: 'run'; id: number; job: Job }
  | { type: 'tool'; id: number; name: string; input: Json }
  | { type: 'read'; id: number; path: string }
  /** Whether the file may be read: `refusal` is the reason when not. */
  | { type: 'verdict'; id: number; refusal?: string }
  | { type: 'answer'; id: number; call: number; answer: SocketResult }
  | { type: 'open'; id: number; options: SessionOptions }
  | { type: 'execute'; id: number; session: number; run: SessionRun }
  | { type: 'reply'; id: number; call: number; answer: SessionAnswer }
  | { type: 'close'; id: number }
  | { type: 'start'; id: number }
  | ({ type: 'input'; id: number } & StreamText)
  | ({ type: 'taken'; id: number } & StreamTaken)
  | { type: 'stop'; id: number }
  | { type: 'cancel'; id: number }
  | { type: 'rest' };

/** Frames from the sandbox container. */
export type SandboxFrame =
  | { type: 'hello'; version: number; canRest?: boolean }
  | { type: 'resting' }
  | { type: 'outcome'; id: number; outcome: JobOutcome }
  | { type: 'call'; id: number; call: number; api: ForwardedApi; input: Json }
  | { type: 'found'; id: number; found: ResolvedFile }
  | { type: 'invoke'; id: number; request: SessionRequest }
  | { type: 'executed'; id: number; outcome: RunOutcome }
  | ({ type: 'output'; id: number } & StreamText)
  | ({ type: 'taken'; id: number } & StreamTaken)
  | ({ type: 'exited'; id: number } & ProgramExit)
  | { type: 'result'; id: number; answer: SocketResult };

type FrameParser<Frame> = (id: number, value: JsonObject) => Frame | undefined;

const AGENT_FRAME_PARSERS: ReadonlyMap<unknown, FrameParser<AgentFrame>> = new Map<string, FrameParser<AgentFrame>>([
  [
    'run',
    (id, value) => {
      const job = parseJob(value['job']);
      return job === undefined ? undefined : { type: 'run', id, job };
    },
  ],
  [
    'tool',
    (id, { name, input }) => (typeof name === 'string' ? { type: 'tool', id, name, input: input ?? null } : undefined),
  ],
  ['read', (id, { path }) => (typeof path === 'string' ? { type: 'read', id, path } : undefined)],
  [
    'verdict',
    (id, { refusal }) => (typeof refusal === 'string' ? { type: 'verdict', id, refusal } : { type: 'verdict', id }),
  ],
  [
    'answer',
    (id, value) => {
      const { call } = value;
      const answer = parseResult(value['answer']);
      return answer === undefined || !isCount(call) ? undefined : { type: 'answer', id, call, answer };
    },
  ],
  [
    'open',
    (id, value) => {
      const options = parseSessionOptions(value['options']);
      return options === undefined ? undefined : { type: 'open', id, options };
    },
  ],
  [
    'execute',
    (id, value) => {
      const run = parseSessionRun(value['run']);
      const { session } = value;
      return run === undefined || !isCount(session) ? undefined : { type: 'execute', id, session, run };
    },
  ],
  [
    'reply',
    (id, value) => {
      const answer = parseSessionAnswer(value['answer']);
      const { call } = value;
      return answer === undefined || !isCount(call) ? undefined : { type: 'reply', id, call, answer };
    },
  ],
  ['close', (id) => ({ type: 'close', id })],
  ['start', (id) => ({ type: 'start', id })],
  [
    'input',
    (id, value) => {
      const text = parseStreamText(value);
      return text === undefined ? undefined : { type: 'input', id, ...text };
    },
  ],
  ['taken', parseTaken],
  ['stop', (id) => ({ type: 'stop', id })],
  ['cancel', (id) => ({ type: 'cancel', id })],
]);

const SANDBOX_FRAME_PARSERS: ReadonlyMap<unknown, FrameParser<SandboxFrame>> = new Map<
  string,
  FrameParser<SandboxFrame>
>([
  [
    'outcome',
    (id, value) => {
      const outcome = parseOutcome(value['outcome']);
      return outcome === undefined ? undefined : { type: 'outcome', id, outcome };
    },
  ],
  [
    'call',
    (id, { call, api, input }) => {
      if (!isCount(call) || !isForwardedApi(api)) return undefined;
      return { type: 'call', id, call, api, input: input ?? null };
    },
  ],
  [
    'invoke',
    (id, value) => {
      const request = parseSessionRequest(value['request']);
      return request === undefined ? undefined : { type: 'invoke', id, request };
    },
  ],
  [
    'executed',
    (id, value) => {
      const outcome = parseRunOutcome(value['outcome']);
      return outcome === undefined ? undefined : { type: 'executed', id, outcome };
    },
  ],
  [
    'found',
    (id, value) => {
      const found = parseFoundFile(value['found']);
      return found === undefined ? undefined : { type: 'found', id, found };
    },
  ],
  [
    'output',
    (id, value) => {
      const text = parseStreamText(value);
      return text === undefined ? undefined : { type: 'output', id, ...text };
    },
  ],
  ['taken', parseTaken],
  [
    'exited',
    (id, value) => {
      const exit = parseProgramExit(value);
      return exit === undefined ? undefined : { type: 'exited', id, ...exit };
    },
  ],
  [
    'result',
    (id, value) => {
      const answer = parseResult(value['answer']);
      return answer === undefined ? undefined : { type: 'result', id, answer };
    },
  ],
]);

function parseTaken(id: number, value: JsonObject): ({ type: 'taken'; id: number } & StreamTaken) | undefined {
  const taken = parseStreamTaken(value);
  return taken === undefined ? undefined : { type: 'taken', id, ...taken };
}

/** Parses a frame from the agent container; undefined when it is invalid. */
export function parseAgentFrame(value: Json): AgentFrame | undefined {
  if (!isJsonObject(value)) return undefined;
  const { type, version, id } = value;
  if (type === 'welcome') return isCount(version) ? { type, version } : undefined;
  if (type === 'rest') return { type };
  return isCount(id) ? AGENT_FRAME_PARSERS.get(type)?.(id, value) : undefined;
}

/** Parses a frame from the sandbox container; undefined when it is invalid. */
export function parseSandboxFrame(value: Json): SandboxFrame | undefined {
  if (!isJsonObject(value)) return undefined;
  const { type, version, canRest, id } = value;
  if (type === 'hello') return isCount(version) ? { type, version, canRest: canRest === true } : undefined;
  if (type === 'resting') return { type };
  return isCount(id) ? SANDBOX_FRAME_PARSERS.get(type)?.(id, value) : undefined;
}
