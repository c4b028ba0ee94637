import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { poll } from '../../support/poll.ts';
import { agentObject, NamespaceAgents, type PodObject, policyObject } from '../support/fixture.ts';
import type { Rule } from '../support/forging-script.ts';
import { childPids, containerPid } from '../support/in-pod.ts';
import type { InstalledCluster } from '../support/installed-cluster.ts';
import { stepRules, stepsIn } from '../support/internet/scripted-steps.ts';

const NAMESPACE = 'resting';
const AGENT = 'rested';
const TOOLS = ['file_*', 'code_run'];
const NOTE = 'write a note';
const READ = 'read the note';
/** Nothing more than the minute after which an idle sandbox rests, and the load of a busy machine. */
const PATIENT = { timeoutMs: 240_000, intervalMs: 500 };

export function restingRules(): Rule[] {
  return [
    ...stepRules(AGENT, NOTE, {
      written: ['file_write', { path: 'note.txt', text: 'remember me' }],
      computed: ['code_run', { code: 'return input.a * 2;', input: { a: 3 } }],
    }),
    ...stepRules(AGENT, READ, {
      noted: ['file_read', { path: 'note.txt' }],
      doubled: ['code_run', { code: 'return input.a * 2;', input: { a: 21 } }],
    }),
  ];
}

interface RestingSuites {
  /** The sandbox works once. It is idle while other suites run. */
  used(): void;
  /** What is left of that sandbox after a minute without a call, and its next call. */
  rested(): void;
}

const readySince = ({ status }: PodObject): string | undefined =>
  status.conditions?.find(({ type, status: value }) => type === 'Ready' && value === 'True')?.lastTransitionTime;

/** An agent that is idle for longer than a minute. */
export function restingSandbox(cluster: () => InstalledCluster): RestingSuites {
  let agents: NamespaceAgents;
  let pod: PodObject;
  const children = async (): Promise<string[]> => {
    const { node } = cluster();
    return childPids(node, await containerPid(node, pod, 'sandbox'));
  };

  function used(): void {
    describe('the sandbox of an agent', () => {
      it('it runs the tools of a message', async () => {
        agents = new NamespaceAgents(cluster(), NAMESPACE);
        const policy = policyObject(NAMESPACE, {
          level: { initial: 'standard', ceiling: 'standard' },
          autonomy: 'Full',
          tainted: { tools: TOOLS },
        });
        await agents.start([policy, agentObject(NAMESPACE, AGENT, { grants: { tools: TOOLS } })], [AGENT]);
        const steps = stepsIn(await agents.sendAndWait(AGENT, NOTE));
        assert.match(steps['computed'] ?? '', /"value":6/, JSON.stringify(steps));
        pod = await agents.boundPod(AGENT);
        assert.ok(readySince(pod) !== undefined);
      });
    });
  }

  function rested(): void {
    describe('the sandbox of an idle agent', () => {
      it('its launcher is the only process, and its pod has been ready all the time', async () => {
        await poll('the rest of the sandbox', async () => (await children()).length === 0, PATIENT);
        const now = await agents.boundPod(AGENT);
        assert.equal(now.metadata.uid, pod.metadata.uid);
        assert.equal(readySince(now), readySince(pod));
        const restarts = now.status.containerStatuses?.map(({ restartCount }) => restartCount);
        assert.deepEqual(restarts, [0, 0]);
      });

      it('the next message finds its files, and the sandbox runs its tools', async () => {
        const steps = stepsIn(await agents.sendAndWait(AGENT, READ));
        assert.match(steps['noted'] ?? '', /remember me/, JSON.stringify(steps));
        assert.match(steps['doubled'] ?? '', /"value":42/, JSON.stringify(steps));
        assert.ok((await children()).length > 0);
      });
    });
  }

  return { used, rested };
}
