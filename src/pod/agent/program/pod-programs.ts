import type { ProgramHost } from '../../../acp/process/port.ts';
import type { ProgramProviders } from '../../../acp/provider/program-providers.ts';
import { concurrencyOf } from '../../../api/limits/concurrency.ts';
import { AGENT_PROGRAM_PROCESSES } from '../../../api/cluster.ts';
import type { AgentSpec } from '../../../api/v1alpha1/agent.ts';
import type { EnginePorts } from '../../../engine/ports.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { IdGenerator } from '../../../lib/ids.ts';
import type { SandboxConnection } from '../sandbox-connection.ts';

export interface PodProgramsDeps {
  sandbox: SandboxConnection;
  clock: Clock;
  ids: IdGenerator;
}

const START_TIMEOUT_MS = 30_000;
/** The requests of a process are held in the memory of the agent container. */
const MAX_REQUEST_BYTES = 4 * 1_024 * 1_024;

/** Messages that the pod of an agent works on at the same time. A program has a process for each of them. */
export function slotsOf({ model, limits }: Pick<AgentSpec, 'model' | 'limits'>): number {
  const wanted = concurrencyOf(limits?.concurrency);
  return model.agent === undefined ? wanted : Math.min(wanted, AGENT_PROGRAM_PROCESSES);
}

/** The agent program of a pod. Its client is loaded only for an agent that has one. */
export class PodPrograms implements AsyncDisposable {
  readonly #deps: PodProgramsDeps;
  #providers: Promise<ProgramProviders> | undefined;

  constructor(deps: PodProgramsDeps) {
    this.#deps = deps;
  }

  /** The port of an engine for the agent: empty for one without a program. */
  async portOf({ model }: Pick<AgentSpec, 'model'>): Promise<Pick<EnginePorts, 'createProvider'>> {
    if (model.agent === undefined) return {};
    this.#providers ??= this.#load();
    const providers = await this.#providers;
    return { createProvider: (charged) => providers.create(charged) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const providers = await this.#providers;
    await providers?.[Symbol.asyncDispose]();
  }

  async #load(): Promise<ProgramProviders> {
    const { clock, ids } = this.#deps;
    const { ProgramProviders } = await import('../../../acp/provider/program-providers.ts');
    return new ProgramProviders({ host: this.#host(), clock, ids, maxProcesses: AGENT_PROGRAM_PROCESSES });
  }

  #host(): ProgramHost {
    const { sandbox, clock, ids } = this.#deps;
    return {
      maxRequestBytes: MAX_REQUEST_BYTES,
      start: (signal) => {
        const deadline = clock.monotonic() + START_TIMEOUT_MS;
        return sandbox.startProgram({ signal, deadline, key: ids.next('program') });
      },
    };
  }
}
