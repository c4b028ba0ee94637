/** What the two containers of a pod say to each other. Each side checks what it reads; anything else ends the connection. */
import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';
import type { Job, Outcome } from '../../sandbox/port.ts';
import type { FoundFile } from '../../tools/host-files.ts';
import { type Answer, answerIn, foundIn, isCount, jobIn, outcomeIn } from './values.ts';

export const PROTOCOL_VERSION = 1;

/** The agent's side. `id` names a request of the agent; `call` a host call of the job of that name. */
export type AgentFrame =
  | { type: 'welcome'; version: number }
  | { type: 'run'; id: number; job: Job }
  | { type: 'tool'; id: number; name: string; input: Json }
  | { type: 'read'; id: number; path: string }
  /** Whether the file that was found may be read; the reason when not. */
  | { type: 'verdict'; id: number; refusal?: string }
  | { type: 'answer'; id: number; call: number; answer: Answer }
  | { type: 'cancel'; id: number };

/** The sandbox's side. */
export type SandboxFrame =
  | { type: 'hello'; version: number }
  | { type: 'outcome'; id: number; outcome: Outcome }
  | { type: 'call'; id: number; call: number; api: 'fetch' | 'fs.readFile'; input: Json }
  | { type: 'found'; id: number; found: FoundFile }
  | { type: 'result'; id: number; answer: Answer };

type Reader<Frame> = (id: number, value: JsonObject) => Frame | undefined;

const AGENT_FRAMES: ReadonlyMap<unknown, Reader<AgentFrame>> = new Map<string, Reader<AgentFrame>>([
  [
    'run',
    (id, value) => {
      const job = jobIn(value['job']);
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
      const answer = answerIn(value['answer']);
      return answer === undefined || !isCount(call) ? undefined : { type: 'answer', id, call, answer };
    },
  ],
  ['cancel', (id) => ({ type: 'cancel', id })],
]);

const SANDBOX_FRAMES: ReadonlyMap<unknown, Reader<SandboxFrame>> = new Map<string, Reader<SandboxFrame>>([
  [
    'outcome',
    (id, value) => {
      const outcome = outcomeIn(value['outcome']);
      return outcome === undefined ? undefined : { type: 'outcome', id, outcome };
    },
  ],
  [
    'call',
    (id, { call, api, input }) => {
      if (!isCount(call) || (api !== 'fetch' && api !== 'fs.readFile')) return undefined;
      return { type: 'call', id, call, api, input: input ?? null };
    },
  ],
  [
    'found',
    (id, value) => {
      const found = foundIn(value['found']);
      return found === undefined ? undefined : { type: 'found', id, found };
    },
  ],
  [
    'result',
    (id, value) => {
      const answer = answerIn(value['answer']);
      return answer === undefined ? undefined : { type: 'result', id, answer };
    },
  ],
]);

/** Undefined for anything that is not exactly a frame of the agent. */
export function agentFrame(value: Json): AgentFrame | undefined {
  if (!isJsonObject(value)) return undefined;
  const { type, version, id } = value;
  if (type === 'welcome') return isCount(version) ? { type, version } : undefined;
  return isCount(id) ? AGENT_FRAMES.get(type)?.(id, value) : undefined;
}

/** Undefined for anything that is not exactly a frame of the sandbox. */
export function sandboxFrame(value: Json): SandboxFrame | undefined {
  if (!isJsonObject(value)) return undefined;
  const { type, version, id } = value;
  if (type === 'hello') return isCount(version) ? { type, version } : undefined;
  return isCount(id) ? SANDBOX_FRAMES.get(type)?.(id, value) : undefined;
}
