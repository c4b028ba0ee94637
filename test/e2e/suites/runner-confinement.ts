import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { POD_PATHS, POD_USERS, PORTS } from '../../../src/api/cluster.ts';
import { socketPaths } from '../../../src/pod/socket/socket-folder.ts';
import {
  buildRunnerProbe,
  IN_RUNNER_WITHOUT_LANDLOCK,
  IN_SANDBOX,
  inRunner,
  parseProbe,
  probeArguments,
  type ProbeResults,
} from '../../support/runner-probe/runner-probe.ts';
import { pollAssertion } from '../../support/poll.ts';
import { childPids, containerPid, execInPod } from '../support/in-pod.ts';
import { type InstalledCluster, RELEASE_NAMESPACE } from '../support/installed-cluster.ts';
import { NamespaceAgents, agentObject, namespaceObject, type PodObject, policyObject } from '../support/fixture.ts';

const NAMESPACE = 'confined';
const BIN = '/usr/local/bin';
/** The probe prints it at its end. */
const LAST_ATTEMPT = 'socketpair';
const PROBE = `${POD_PATHS.workspace}/runner-probe`;

/** What a native program reaches in a real agent pod when it runs in the place of a runner, which runs guest code. */
export function runnerConfinement(cluster: () => InstalledCluster): void {
  describe('a native program in the sandbox container of an agent pod', () => {
    let folder: string;
    let pod: PodObject;
    let pid: string;
    let gateway: string;

    before(async () => {
      folder = await mkdtemp(join(tmpdir(), 'temper-runner-probe-'));
      const program = await buildRunnerProbe(folder);
      const agents = new NamespaceAgents(cluster(), NAMESPACE);
      await cluster().apply(namespaceObject(NAMESPACE));
      await cluster().apply(policyObject(NAMESPACE), agentObject(NAMESPACE, 'probed'));
      await agents.waitForReason('probed', 'Running');
      pod = await agents.boundPod('probed');
      const { node } = cluster();
      pid = await containerPid(node, pod, 'sandbox');
      const service = ['get', 'service', 'temper-gateway', '-n', RELEASE_NAMESPACE];
      gateway = `${await cluster().kubectl(...service, '-o', 'jsonpath={.spec.clusterIP}')}:${PORTS.gateway}`;
      const inContainer = (path: string) => `/proc/${pid}/root${path}`;
      await node.onNode('install', '-m', '755', program, inContainer(PROBE));
      for (const name of ['existing', 'removable']) {
        const owner = ['-o', String(POD_USERS.sandbox), '-g', String(POD_USERS.group), '-m', '600'];
        await node.onNode('install', ...owner, '/dev/null', inContainer(`${POD_PATHS.workspace}/${name}`));
      }
    });
    after(async () => {
      await rm(folder, { recursive: true, force: true });
    });

    /** The supervisor of the runners, by its number on the node and in its container: the child of the launcher. */
    const supervisor = async (): Promise<{ outside: string; inside: number }> => {
      const { node } = cluster();
      const [outside = ''] = await childPids(node, pid);
      const [, inside] = /^NSpid:.*\s(\d+)$/m.exec(await node.onNode('cat', `/proc/${outside}/status`)) ?? [];
      return { outside, inside: Number(inside) };
    };
    const attempt = async (...starter: string[]): Promise<ProbeResults> => {
      const targets = {
        supervisor: (await supervisor()).inside,
        folder: POD_PATHS.workspace,
        node: `${BIN}/node`,
        socket: socketPaths(POD_PATHS.run).socket,
        gateway,
      };
      const program = [...starter, PROBE, ...probeArguments(targets)];
      const results = parseProbe(await execInPod(cluster().node, pod, 'sandbox', program));
      assert.ok(LAST_ATTEMPT in results.attempts, 'the probe ends early');
      return results;
    };
    const supervised = [`${BIN}/launcher`, 'run'];
    const asRunner = [...supervised, `${BIN}/temper-launcher`, 'runner'];

    it('a process beside the supervisor reads neither its memory nor Node, and reaches no network', async () => {
      assert.deepEqual((await attempt(...supervised)).attempts, IN_SANDBOX);
      // Without the launcher the network of the pod is open: the probe does not fail for another reason.
      const { gateway: reached, dns } = (await attempt()).attempts;
      assert.deepEqual([reached, dns], ['done', 'done']);
    });

    it('a runner opens no socket, signals only itself, and reads neither the memory of its supervisor nor Node', async () => {
      const program = [PROBE, 'without-landlock', `${BIN}/temper-launcher`, 'runner'];
      assert.deepEqual((await attempt(...supervised, ...program)).attempts, IN_RUNNER_WITHOUT_LANDLOCK);
    });

    it('with Landlock a runner also writes to no file', async (context) => {
      const { landlock, attempts } = await attempt(...asRunner);
      if (landlock === 0) {
        context.skip('the kernel of this node has no Landlock');
        return;
      }
      assert.deepEqual(attempts, inRunner(landlock));
    });

    it('each runner of the pod has the limits and the filter of the launcher', async () => {
      const { outside } = await supervisor();
      const script = `
        import { readFileSync } from 'node:fs';
        const of = (pid, file) => readFileSync('/proc/' + pid + '/' + file, 'utf8');
        const filters = (pid) => Number(/Seccomp_filters:\\s+([0-9]+)/.exec(of(pid, 'status'))[1]);
        const children = of('${outside}', 'task/${outside}/children').trim().split(' ').filter((child) => child !== '');
        console.log(JSON.stringify(children.map((child) => ({
          filters: filters(child) - filters('${outside}'),
          writes: /Max file size +([0-9]+)/.exec(of(child, 'limits'))?.[1],
          outOfMemory: of(child, 'oom_score_adj').trim(),
        }))));
      `;
      // The launcher of a runner that starts sets the limits one after another.
      await pollAssertion('the limits of the runners', async () => {
        const runners = JSON.parse(
          await cluster().node.onNode(process.execPath, '--input-type=module', '-e', script),
        ) as object[];
        assert.ok(runners.length > 0);
        for (const runner of runners) assert.deepEqual(runner, { filters: 1, writes: '0', outOfMemory: '1000' });
      });
    });
  });
}
