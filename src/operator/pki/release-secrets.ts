import { Buffer } from 'node:buffer';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import { FIELD_MANAGER, MANAGED_LABEL, type PlainObject, TYPES } from '../kube/types.ts';

/** The decoded members of a Secret. */
export type SecretData = Readonly<Record<string, string>>;

/** The Secrets of the operator in the release namespace. They are read by name, never listed. */
export class ReleaseSecrets {
  readonly #client: KubeClient;
  readonly #namespace: string;

  constructor(client: KubeClient, namespace: string) {
    this.#client = client;
    this.#namespace = namespace;
  }

  /** Undefined when the Secret does not exist. Throws ApiError. */
  async read(name: string, signal: AbortSignal): Promise<SecretData | undefined> {
    const found = await this.#client.get<PlainObject>(TYPES.secrets, { namespace: this.#namespace, name }, signal);
    if (found === undefined) return undefined;
    const data = (found['data'] ?? {}) as Record<string, string>;
    return Object.fromEntries(
      Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString('utf8')]),
    );
  }

  /** Applies the Secret unless its members are already equal; removes other members. Returns true after a write. Throws ApiError. */
  async apply(name: string, wanted: SecretData, known: SecretData | undefined, signal: AbortSignal): Promise<boolean> {
    if (known !== undefined && isSame(known, wanted)) return false;
    const data = Object.fromEntries(
      Object.entries(wanted).map(([key, value]) => [key, Buffer.from(value, 'utf8').toString('base64')]),
    );
    const metadata = { name, namespace: this.#namespace, labels: { ...MANAGED_LABEL } };
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque', data };
    await this.#client.apply(TYPES.secrets, secret, { manager: FIELD_MANAGER, force: true }, signal);
    return true;
  }
}

function isSame(one: SecretData, other: SecretData): boolean {
  const keys = Object.keys(other);
  return keys.length === Object.keys(one).length && keys.every((key) => one[key] === other[key]);
}
