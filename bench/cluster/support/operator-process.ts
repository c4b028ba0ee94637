import { type ServerLaunch, ServerProcess, sumOf } from './server-process.ts';

interface OperatorLaunch extends Omit<ServerLaunch, 'role'> {
  readonly kubeconfig: string;
}

/** One operator replica as a separate process. */
export class OperatorProcess extends ServerProcess {
  /** Starts `temper serve operator`. Does not wait until its caches are synced. */
  static async launch({ kubeconfig, env, ...launch }: OperatorLaunch, name: string): Promise<OperatorProcess> {
    const environment = { KUBECONFIG: kubeconfig, ...env };
    const started = await this.start({ ...launch, role: 'operator', env: environment }, name);
    return started as OperatorProcess;
  }

  async isLeading(): Promise<boolean> {
    return (await this.metric('leader_election_master_status').catch(() => 0)) === 1;
  }

  /** Waits until the caches are synced and, with `leading`, until the replica leads. */
  async waitUntilReady({ leading = true } = {}): Promise<void> {
    await this.waitUntil('ready', async () => (await this.isReady()) && (!leading || (await this.isLeading())));
  }

  /** Whether every agent was reconciled and the queues are empty. */
  async isReconciled(agents: number): Promise<boolean> {
    const text = await this.metrics();
    const reconciles = sumOf(text, 'controller_runtime_reconcile_total', { controller: 'agents' });
    const queued = sumOf(text, 'workqueue_depth') + sumOf(text, 'controller_runtime_active_workers');
    return reconciles >= agents && queued === 0;
  }
}
