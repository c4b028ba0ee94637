import type { CallOptions } from '../../lib/call-options.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { Decision, PolicyRequest } from '../../policy/types.ts';
import type { CallerContext } from '../../tools/contract.ts';
import type { Memory } from '../ports.ts';
import { isUntrustedEntry, memoryRequest } from '../tools/memory-access.ts';
import { type AgentContext, type ContextPart, contextOf } from './context-text.ts';

/** Reads the context of an agent for one message. */
export type ContextReader = (caller: CallerContext, op: CallOptions) => Promise<AgentContext>;

export interface ContextSources {
  files: readonly string[];
  memoryKeys: readonly string[];
  /** Reads a file of the workspace with the permissions of the caller. Throws TEMPER_FILE_DENIED or TEMPER_FILE_FAILED. */
  readFile: (path: string, caller: CallerContext, op: CallOptions) => Promise<string>;
  memory: Pick<Memory, 'get'>;
  decide: (caller: CallerContext, request: PolicyRequest) => Decision;
  /** Called with what the session reads, before the model sees it. */
  onRead: (caller: CallerContext, part: 'File' | 'Memory' | 'UntrustedMemory') => void;
}

/**
 * The files and memory values that the manifest names. What the policy denies now, and what does not exist, is left out; a failure of the
 * sandbox or of the store fails the message, so that an agent never works without its context by accident.
 */
export function createContextReader(sources: ContextSources): ContextReader {
  const { files, memoryKeys } = sources;
  return async (caller, op) => {
    const parts = await Promise.all([
      ...files.map((path) => readFilePart(sources, path, caller, op)),
      ...memoryKeys.map((key) => readMemoryPart(sources, key, caller)),
    ]);
    return contextOf(parts);
  };
}

async function readFilePart(
  { readFile, onRead }: ContextSources,
  path: string,
  caller: CallerContext,
  op: CallOptions,
): Promise<ContextPart> {
  const part = { kind: 'File', name: path, text: '' } as const;
  try {
    const text = await readFile(path, caller, op);
    onRead(caller, 'File');
    return text.includes('\0') ? { ...part, state: 'Missing' } : { ...part, state: 'Included', text };
  } catch (error) {
    if (isTemperError(error, 'TEMPER_FILE_DENIED')) return { ...part, state: 'Denied' };
    if (isTemperError(error, 'TEMPER_FILE_FAILED')) return { ...part, state: 'Missing' };
    throw error;
  }
}

async function readMemoryPart(
  { memory, decide, onRead }: ContextSources,
  key: string,
  caller: CallerContext,
): Promise<ContextPart> {
  const part = { kind: 'Memory', name: key, text: '' } as const;
  if (decide(caller, memoryRequest(key, 'read')).effect !== 'Allow') return { ...part, state: 'Denied' };
  const found = await memory.get(key);
  if (found === undefined) return { ...part, state: 'Missing' };
  const { value, tainted } = found;
  onRead(caller, isUntrustedEntry({ key, tainted }) ? 'UntrustedMemory' : 'Memory');
  return { ...part, state: 'Included', text: typeof value === 'string' ? value : JSON.stringify(value) };
}
