import { triggersOf } from '../../api/schedule/triggers.ts';
import type { Agent } from '../../api/v1alpha1/agent.ts';
import { parseWebhookKeys } from '../../events/webhook/signature.ts';
import { resourceType } from '../../kube/client/resource-path.ts';
import type { KubeReader } from '../../kube/client/kube-client.ts';
import type { KubeObject } from '../../kube/informer/store.ts';
import type { Clock } from '../../lib/clock.ts';
import { messageOf } from '../../lib/errors.ts';
import type { Logger } from '../../telemetry/log.ts';

/** The one Secret of a namespace that the gateway may read. */
const WEBHOOK_SECRET = 'temper-webhooks';
const SECRETS = resourceType('v1', 'secrets', 'Secret');
const REFRESH_MS = 10_000;
const READ_TIMEOUT_MS = 5_000;

interface Secret extends KubeObject {
  readonly data?: Readonly<Record<string, string>>;
}

export interface WebhookKeysDeps {
  client: Pick<KubeReader, 'get'>;
  agents: () => readonly Agent[];
  clock: Clock;
  log: Pick<Logger, 'warn'>;
}

/**
 * The keys of webhooks. They are read for the namespaces whose Agents have webhooks, in the background: no request waits for one or causes one,
 * so its time does not show whether there is such a namespace, agent or key.
 */
export class WebhookKeys implements AsyncDisposable {
  readonly #deps: WebhookKeysDeps;
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;
  #keys: ReadonlyMap<string, ReadonlyMap<string, readonly Uint8Array[]>> = new Map();

  constructor(deps: WebhookKeysDeps) {
    this.#deps = deps;
  }

  /** Once the cache has the Agents. */
  start(): void {
    this.#running ??= this.#repeat();
  }

  of(namespace: string, agent: string, trigger: string): readonly Uint8Array[] {
    return this.#keys.get(namespace)?.get(`${agent}.${trigger}`) ?? [];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #repeat(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await this.#refresh();
      await this.#deps.clock.sleep(REFRESH_MS, signal).catch(() => undefined);
    }
  }

  async #refresh(): Promise<void> {
    const namespaces = new Set(this.#deps.agents().filter(hasWebhook).map(namespaceOf));
    const next = new Map<string, ReadonlyMap<string, readonly Uint8Array[]>>();
    for (const namespace of namespaces) {
      const read = await this.#read(namespace);
      if (read !== undefined) next.set(namespace, read);
    }
    this.#keys = next;
  }

  /** The last known keys while the API server does not answer. */
  async #read(namespace: string): Promise<ReadonlyMap<string, readonly Uint8Array[]> | undefined> {
    const { client, log } = this.#deps;
    const { signal } = this.#stopping;
    try {
      const ended = AbortSignal.any([signal, AbortSignal.timeout(READ_TIMEOUT_MS)]);
      const secret = await client.get<Secret>(SECRETS, { namespace, name: WEBHOOK_SECRET }, ended);
      return new Map(
        Object.entries(secret?.data ?? {}).map(([name, data]) => [
          name,
          parseWebhookKeys(Buffer.from(data, 'base64').toString('utf8')),
        ]),
      );
    } catch (error) {
      if (!signal.aborted)
        log.warn({ namespace, error: messageOf(error, 200) }, 'the keys of webhooks could not be read; retrying');
      return this.#keys.get(namespace);
    }
  }
}

function hasWebhook({ spec }: Agent): boolean {
  return triggersOf(spec).some(({ webhook }) => webhook !== undefined);
}

function namespaceOf({ metadata }: Agent): string {
  return metadata.namespace ?? '';
}
