import { RELEASE_OBJECTS } from '../../api/cluster.ts';
import type { Clock } from '../../lib/clock.ts';
import { messageOf } from '../../lib/errors.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { ReleaseSecrets } from './release-secrets.ts';

/** The Secrets that the pod of the operator mounts, and that the leader creates after the pod has started. */
const MOUNTED = [RELEASE_OBJECTS.natsUsers, RELEASE_OBJECTS.natsCertificate];
const RETRY_MS = 1_000;

/**
 * Whether the Secrets exist with which the operator connects to NATS. The kubelet updates a mounted Secret when the state of its pod
 * changes, and otherwise within about 90 seconds. A pod that gets ready after the Secrets exist has the files at once.
 */
export class NatsSecrets {
  #exist = false;

  get exist(): boolean {
    return this.#exist;
  }

  /** Looks until they exist, or the signal aborts. Never throws. */
  async watch(
    { secrets, clock, log }: { secrets: Pick<ReleaseSecrets, 'read'>; clock: Clock; log: Logger },
    signal: AbortSignal,
  ): Promise<void> {
    while (!signal.aborted) {
      try {
        const found = await Promise.all(MOUNTED.map((name) => secrets.read(name, signal)));
        this.#exist = found.every((secret) => secret !== undefined);
        if (this.#exist) return;
      } catch (error) {
        if (!signal.aborted) log.warn({ reason: messageOf(error, 300) }, 'the Secrets for NATS could not be read');
      }
      await clock.sleep(RETRY_MS, signal).catch(() => undefined);
    }
  }
}
