import { type ContextReader, createContextReader } from '../../agent/context/read-context.ts';
import { isUntrustedSource } from '../../policy/untrusted-source.ts';
import { type ResolvedFile, readFileBelow } from '../../tools/host/host-files.ts';
import type { EngineContext } from '../engine-context.ts';

/** Reads what `spec.prompt.context` names; undefined for an agent without a context. */
export function agentContext({ agent, ports, decider, taint }: EngineContext): ContextReader | undefined {
  const { files = [], memory: memoryKeys = [] } = agent.spec.prompt.context ?? {};
  if (files.length + memoryKeys.length === 0) return undefined;
  const { workspace, protectedPaths, remoteWorkspace, memory } = ports;
  const taintsByFile = isUntrustedSource('File', agent.policy.spec);
  return createContextReader({
    files,
    memoryKeys,
    memory,
    decide: (caller, request) => decider(caller).decide(request),
    readFile(path, caller, op) {
      const refuse = ({ absolute }: ResolvedFile): string | undefined => {
        const decision = decider(caller).decide({ kind: 'File', path: absolute, access: 'read' });
        return decision.effect === 'Allow' ? undefined : `${decision.reason} (${decision.rule})`;
      };
      if (remoteWorkspace !== undefined) return remoteWorkspace.readFile(path, refuse, op);
      return readFileBelow(path, workspace, [workspace], refuse, protectedPaths);
    },
    onRead({ session }, part) {
      if (part === 'UntrustedMemory') taint.mark(session, 'Memory');
      else if (part === 'File' && taintsByFile) taint.mark(session, 'File');
      taint.read(session, part === 'File' ? 'File' : 'Memory');
    },
  });
}
