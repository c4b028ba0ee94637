import type { Clock } from '../../lib/clock.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import { CallerCircuit, type CircuitSettings } from '../../models/resilience/caller-circuit.ts';

const SETTINGS: CircuitSettings = {
  failuresToOpen: 5,
  coolDownMs: [30_000, 10 * 60_000],
  billingCoolDownMs: [30_000, 10 * 60_000],
  probeIntervalMs: 15_000,
};
/** Circuits of more agents and hosts are not kept; the oldest one is dropped. */
const MAX_CIRCUITS = 2_000;
/** Failures of a host, and not of a question. */
const COUNTED: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'TEMPER_FETCH_FAILED',
  'TEMPER_MCP_SERVER_FAILED',
  'TEMPER_TOOL_TIMEOUT',
  'TEMPER_CONNECTION_FAILED',
  'TEMPER_SEARCH_FAILED',
]);

/** One circuit for each agent and host: an agent does not wait again and again for a host that does not answer, and closes no circuit of another one. */
export class HostCircuits {
  readonly #clock: Clock;
  readonly #circuits = new Map<string, CallerCircuit>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Throws TEMPER_FETCH_FAILED while the circuit is open, and what the work throws. */
  async during<T>(agentUid: string, host: string, work: () => Promise<T>): Promise<T> {
    const key = `${agentUid} ${host}`;
    const circuit = this.#circuits.get(key);
    const admitted = circuit?.admit(this.#clock.monotonic()) ?? 'call';
    if (circuit !== undefined && admitted === 'refused') {
      const seconds = Math.ceil(circuit.waitMs(this.#clock.monotonic()) / 1_000);
      throw new TemperError('TEMPER_FETCH_FAILED', `${host} failed several times; it is asked again in ${seconds} s`);
    }
    try {
      const result = await work();
      this.#circuits.delete(key);
      return result;
    } catch (error) {
      if (isTemperError(error) && COUNTED.has(error.code)) this.#failed(key, error, admitted === 'probe');
      throw error;
    } finally {
      if (admitted === 'probe') circuit?.releaseProbe();
    }
  }

  #failed(key: string, error: TemperError, isProbe: boolean): void {
    const circuit = this.#circuits.get(key) ?? new CallerCircuit(SETTINGS);
    this.#circuits.delete(key);
    this.#circuits.set(key, circuit);
    const { failuresToOpen } = SETTINGS;
    circuit.failed(error, this.#clock.monotonic(), { isProbe, failuresToOpen });
    const [oldest] = this.#circuits.keys();
    if (this.#circuits.size > MAX_CIRCUITS && oldest !== undefined) this.#circuits.delete(oldest);
  }
}
