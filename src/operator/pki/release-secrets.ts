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
    return (await this.readVersion(name, signal))?.data;
  }

  /** The Secret and its version. Undefined when it does not exist. Throws ApiError. */
  async readVersion(name: string, signal: AbortSignal): Promise<{ data: SecretData; version: string } | undefined> {
    const found = await this.#client.get<PlainObject>(TYPES.secrets, { namespace: this.#namespace, name }, signal);
    if (found === undefined) return undefined;
    const encoded = Object.entries((found['data'] ?? {}) as Record<string, string>);
    const data = encoded.map(([key, value]) => [key, Buffer.from(value, 'base64').toString('utf8')]);
    return { data: Object.fromEntries(data) as SecretData, version: found.metadata.resourceVersion ?? '' };
  }

  /** Applies the Secret unless its members are already equal; removes other members. Returns true after a write. Throws ApiError. */
  async apply(name: string, wanted: SecretData, known: SecretData | undefined, signal: AbortSignal): Promise<boolean> {
    if (known !== undefined && isSame(known, wanted)) return false;
    await this.#client.apply(
      TYPES.secrets,
      this.#secret(name, wanted),
      { manager: FIELD_MANAGER, force: true },
      signal,
    );
    return true;
  }

  /** Writes the Secret on the version that was read, or creates it. Throws ApiError when another writer was first. */
  async replace(name: string, wanted: SecretData, version: string | undefined, signal: AbortSignal): Promise<void> {
    const secret = this.#secret(name, wanted);
    if (version === undefined) {
      await this.#client.create(TYPES.secrets, secret, signal, { manager: FIELD_MANAGER });
      return;
    }
    const metadata = { ...secret.metadata, resourceVersion: version };
    await this.#client.apply(TYPES.secrets, { ...secret, metadata }, { manager: FIELD_MANAGER, force: true }, signal);
  }

  #secret(name: string, content: SecretData) {
    const data = Object.fromEntries(
      Object.entries(content).map(([key, value]) => [key, Buffer.from(value, 'utf8').toString('base64')]),
    );
    const metadata = { name, namespace: this.#namespace, labels: { ...MANAGED_LABEL } };
    return { apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque', data };
  }
}

function isSame(one: SecretData, other: SecretData): boolean {
  const keys = Object.keys(other);
  return keys.length === Object.keys(one).length && keys.every((key) => one[key] === other[key]);
}
