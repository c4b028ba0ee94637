import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../../src/lib/clock.ts';
import { SandboxConnection } from '../../../src/pod/agent/sandbox-connection.ts';
import { serveSandbox } from '../../../src/pod/sandbox/serve.ts';
import { prepareSocketFolder, socketPaths } from '../../../src/pod/socket/socket-folder.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import { createSecretRedactor } from '../../../src/telemetry/secret-redactor.ts';
import { podCloneLocation } from '../../../src/toolbox/git/clone/clone-location.ts';
import { gitTools } from '../../../src/toolbox/git/git-tools.ts';
import type { RemoteGitDeps } from '../../../src/toolbox/git/remote/deps.ts';
import { remoteGitTools } from '../../../src/toolbox/git/remote/remote-tools.ts';
import { remoteTerminal } from '../../../src/toolbox/terminal/local-terminal.ts';
import type { Tool } from '../../../src/tools/contract.ts';
import { buildLauncher } from '../launcher.ts';

/** The two containers of a pod in this process, as far as Git needs them: what the agent container asks goes over the socket between them. */
export interface GitPod extends AsyncDisposable {
  readonly workspace: string;
  readonly sandbox: SandboxConnection;
  /** The git tools of its agent, with these ways out. The pod permits everything: what is refused, the gateway refuses. */
  tools(ways: Pick<RemoteGitDeps, 'web' | 'gatewayRepositories'>): Tool[];
}

export async function startGitPod(): Promise<GitPod> {
  const base = await realpath(await mkdtemp(join(tmpdir(), 'temper-git-pod-')));
  const stop = new AbortController();
  const [workspace, run] = [join(base, 'workspace'), join(base, 'run')];
  for (const folder of [workspace, run]) await mkdir(folder);
  const launcher = await buildLauncher(base);
  const agentUid = process.getuid?.() ?? 0;
  await prepareSocketFolder(run, agentUid);
  const connected = Promise.withResolvers<void>();
  const sandbox = await SandboxConnection.listen(socketPaths(run).socket, {
    clock: systemClock,
    onChange: (isConnected) => void (isConnected && connected.resolve()),
  });
  const log = createLogger({
    level: 'error',
    destination: { write: () => undefined },
    secrets: createSecretRedactor(),
  });
  const role = { run, workspace, agentUid, launcher, environment: {}, clock: systemClock, log };
  const serving = serveSandbox({ ...role, signal: stop.signal });
  await connected.promise;
  const terminal = remoteTerminal(sandbox);
  const decide = () => ({ effect: 'Allow', rule: 'test', reason: 'test', risk: 'low' }) as const;
  const shared = {
    workspace,
    decide,
    clock: systemClock,
    terminal,
    remote: sandbox,
    cloneLocation: podCloneLocation(sandbox),
  };
  return {
    workspace,
    sandbox,
    tools: (ways) => [...remoteGitTools({ ...shared, ...ways }), ...gitTools(terminal)],
    async [Symbol.asyncDispose]() {
      stop.abort(new Error('the tests are over'));
      await serving;
      await sandbox[Symbol.asyncDispose]();
      await rm(base, { recursive: true, force: true });
    },
  };
}
