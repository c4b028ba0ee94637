import { resolve } from 'node:path';
import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import { splitReference } from '../../forge/request.ts';
import { DEFAULT_PORT, splitPort } from '../../policy/patterns/hosts.ts';
import { compilePattern } from '../../policy/patterns/pattern.ts';
import type { Decider, PolicyRequest } from '../../policy/types.ts';
import { toolRequest } from '../../tools/authorize.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import type { Steps } from './steps.ts';

/** The hosts and files that a forged tool declares. */
export type DeclaredReach = Pick<ToolArtifact['requires'], 'domains' | 'paths'>;

/** What the work of a forged tool is decided with. */
interface WorkDeps {
  decider: Pick<Decider, 'decide'>;
  /** Absolute path. */
  workspace: string;
  /** The tools that its steps may name. */
  tools: readonly ToolDescriptor[];
}

interface Work {
  rule: 'fetch' | 'fs.readFile' | 'step';
  what: string;
  /** Absent where only the arguments of the work decide. */
  request?: PolicyRequest | undefined;
}

/**
 * Notes what the host functions and the steps of a forged tool would meet, as far as its declarations say what they ask for. Returns what
 * the policy would refuse: the work fails there, and not the call.
 */
export function noteWork(
  steps: Steps,
  { requires, steps: called }: { requires: DeclaredReach | undefined; steps: readonly string[] },
  { decider, workspace, tools }: WorkDeps,
): string[] {
  const work: Work[] = [
    ...(requires?.domains ?? []).map(connectionTo),
    ...(requires?.paths ?? []).map((path) => readOf(path, workspace)),
    ...called.map((step) => callOf(step, tools)),
  ];
  const refused: string[] = [];
  for (const { rule, what, request } of work) {
    if (request === undefined) {
      steps.note(rule, 'not-applicable', `${what}: decided at each use`);
      continue;
    }
    const { effect, reason, rule: decidedBy } = decider.decide(request);
    // Guest code waits for no approver; a step does.
    const isPermitted = effect === 'Allow' || (effect === 'Escalate' && request.kind === 'Tool');
    steps.note(rule, isPermitted ? 'passed' : 'denied', `${what}: ${reason} (${decidedBy})`);
    if (!isPermitted) refused.push(`${rule} ${what} (${decidedBy})`);
  }
  return refused;
}

function connectionTo(domain: string): Work {
  const split = compilePattern(domain, 'host').literal === undefined ? undefined : splitPort(domain);
  if (split === undefined) return { rule: 'fetch', what: domain };
  const { host, port = DEFAULT_PORT } = split;
  return { rule: 'fetch', what: domain, request: { kind: 'Network', host, port: Number(port) } };
}

function readOf(path: string, workspace: string): Work {
  if (compilePattern(path, 'path').literal === undefined) return { rule: 'fs.readFile', what: path };
  return { rule: 'fs.readFile', what: path, request: { kind: 'File', path: resolve(workspace, path), access: 'read' } };
}

/** The arguments of a step may still make it refused. */
function callOf(step: string, tools: readonly ToolDescriptor[]): Work {
  const { name } = splitReference(step);
  const tool = tools.find((one) => one.name === name);
  return { rule: 'step', what: name, request: tool && toolRequest(tool) };
}
