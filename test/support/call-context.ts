import type { CallContext } from '../../src/tools/contract.ts';
import { NEVER_ABORTED } from './stubs.ts';

/** The context of a call by an agent, without a deadline, of a tool that calls no other one. */
export function aCallContext(changes: Partial<CallContext> = {}): CallContext {
  return {
    agent: 'coder',
    namespace: 'team-a',
    session: 's-1',
    rootMessage: 'root',
    stack: [],
    origin: 'Agent',
    op: { signal: NEVER_ABORTED, deadline: Number.POSITIVE_INFINITY, key: 'key' },
    invoke: () => Promise.reject(new Error('not called')),
    ...changes,
  };
}
