import type { AgentSpec } from '../../src/api/v1alpha1/agent.ts';
import { admitChild } from '../../src/policy/children/admission.ts';
import { createDecider } from '../../src/policy/decider.ts';
import type { BenchRow } from '../row.ts';

const CHILDREN = 100;
const ROUNDS = 5;
const GOAL_MILLISECONDS = 500;
/** Times the compilation of the policy of each child, which its first decision needs anyway. */
const MAX_RATIO = 20;

function specOf(patterns: (name: string) => string): AgentSpec {
  const list = (name: string): string[] => Array.from({ length: 20 }, (_, index) => patterns(`${name}_${index}`));
  return {
    trustPolicyRef: { name: 'standard' },
    model: { primary: 'openai/gpt-4o-mini' },
    prompt: { system: 'You are careful.' },
    grants: { tools: list('tool'), messages: list('peer'), memory: { read: list('key'), write: list('key') } },
    limits: { turns: 10 },
  };
}

const PARENT = specOf((name) => `${name}_*`);
const CHILD = specOf((name) => `${name}_part`);

function fastest(work: (index: number) => void): number {
  const times = Array.from({ length: ROUNDS }, () => {
    const started = performance.now();
    for (let index = 0; index < CHILDREN; index += 1) work(index);
    return performance.now() - started;
  });
  return Math.min(...times);
}

/** The admission of 100 children with 80 patterns each. */
export async function benchChildren(): Promise<BenchRow[]> {
  const facts = { parent: { name: 'lead', spec: PARENT }, policy: {}, template: undefined, children: 0, total: 0 };
  let admitted = 0;
  const admission = fastest(() => {
    if ('spec' in admitChild({ spec: CHILD }, facts)) admitted += 1;
  });
  const snapshot = {
    policy: { name: 'standard', spec: {} },
    level: 'standard',
    tainted: false,
    workspace: '/workspace',
  };
  const compilation = fastest((index) => {
    createDecider({ ...snapshot, agent: { name: `child-${index}`, namespace: 'team-a', spec: CHILD } });
  });
  const ratio = admission / compilation;
  return [
    {
      name: `admission of ${CHILDREN} child agents`,
      figures: {
        admission: `${admission.toFixed(1)} ms (goal ${GOAL_MILLISECONDS} ms)`,
        compilation: `${compilation.toFixed(1)} ms`,
        ratio: ratio.toFixed(1),
      },
      limit: `all admitted; at most ${MAX_RATIO} times the compilation of their policies`,
      met: admitted === CHILDREN * ROUNDS && ratio <= MAX_RATIO,
    },
  ];
}
