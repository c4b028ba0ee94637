import type { KubeReader } from '../../kube/client/kube-client.ts';

/** The user name of this process at the API server, which `spec.approvedBy` of its Approvals must be. */
export class OperatorIdentity {
  readonly #client: Pick<KubeReader, 'whoAmI'>;
  #name: string | undefined;

  constructor(client: Pick<KubeReader, 'whoAmI'>) {
    this.#client = client;
  }

  /** Asks the API server once. Throws ApiError. */
  async name(signal: AbortSignal): Promise<string> {
    this.#name ??= (await this.#client.whoAmI(signal)).username;
    return this.#name;
  }
}
