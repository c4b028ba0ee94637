import { ANNOTATIONS, RELEASE_OBJECTS } from '../../api/cluster.ts';
import { ApiError, type KubeClient } from '../../kube/client/kube-client.ts';
import type { ReconcileContext } from '../../kube/controller/controller.ts';
import type { ReconcileResult } from '../../kube/controller/result.ts';
import { digestOf } from '../../lib/canonical.ts';
import type { IdGenerator } from '../../lib/ids.ts';
import { TemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import type { OperatorConfig } from '../config.ts';
import { containsFields } from '../kube/subset-match.ts';
import { FIELD_MANAGER, type PlainObject, type Pod, TYPES } from '../kube/types.ts';
import { type EndpointData, endpointsConfigMap } from '../namespace/objects.ts';
import { warmPodName } from '../pods/pod-name.ts';
import { removePod } from '../pods/pod-ownership.ts';
import { planVerifiers } from './plan.ts';
import type { VerifierTemplate } from './pod-template.ts';
import type { VerifierPods } from './verifier-pods.ts';

export interface VerifierPoolDeps {
  readonly client: KubeClient;
  readonly config: Pick<OperatorConfig, 'namespace' | 'verifier'>;
  readonly template: VerifierTemplate | undefined;
  readonly verifierPods: VerifierPods;
  readonly ids: IdGenerator;
  readonly endpoints: () => EndpointData | undefined;
}

const DEFAULT_WARM = 1;
export const DEFAULT_MAX_VERIFIERS = 4;
const ENDPOINT_RETRY_MS = 1_000;
const REFUSED_RETRY_MS = 30_000;
const RESYNC_MS = 60_000;

/** Keeps the verifier pods of the release: the warm ones, and those of promotions that wait. */
export class VerifierPool {
  readonly #deps: VerifierPoolDeps;
  #appliedEndpoint: string | undefined;

  constructor(deps: VerifierPoolDeps) {
    this.#deps = deps;
  }

  async reconcile({ log, signal }: ReconcileContext): Promise<ReconcileResult> {
    const { client, config, template, verifierPods } = this.#deps;
    const endpoints = this.#deps.endpoints();
    if (template === undefined || config.verifier === undefined) return { kind: 'done' };
    if (endpoints === undefined) return { kind: 'requeueAfter', afterMs: ENDPOINT_RETRY_MS };
    await this.#applyEndpoints(endpoints, signal);
    const { warm = DEFAULT_WARM, max = DEFAULT_MAX_VERIFIERS } = config.verifier;
    const waiting = verifierPods.waiting.length;
    const isInUse = (uid: string): boolean => verifierPods.isInUse(uid);
    const isClaimed = (uid: string): boolean => verifierPods.isClaimed(uid);
    const demand = { warm, max, waiting, digest: template.digest, isInUse, isClaimed };
    const plan = planVerifiers(verifierPods.pods(), demand);
    for (const pod of plan.remove) await removePod(client, pod, signal);
    try {
      for (let made = 0; made < plan.create; made += 1) verifierPods.onCreated(await this.#create(template, signal));
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 403) throw error;
      log.warn({ error: printable(error.message, 500) }, 'the API server rejected a verifier pod');
      return { kind: 'requeueAfter', afterMs: REFUSED_RETRY_MS };
    }
    return { kind: 'requeueAfter', afterMs: RESYNC_MS };
  }

  async #create({ digest, labels, spec }: VerifierTemplate, signal: AbortSignal): Promise<Pod> {
    const { client, config, ids } = this.#deps;
    const name = warmPodName('verifier', ids.next('verifier'));
    const annotations = { [ANNOTATIONS.template]: digest };
    const ownerReferences = [await this.#owner(signal)];
    const metadata = { name, namespace: config.namespace, labels, annotations, ownerReferences };
    const object = { apiVersion: 'v1', kind: 'Pod', metadata, spec };
    return client.create<Pod>(TYPES.pods, object, signal, { manager: FIELD_MANAGER });
  }

  /** Again after each change: the pods follow the certificate authority through it. A verifier pod reaches no egress proxy. */
  async #applyEndpoints({ egress: _egress, ...endpoints }: EndpointData, signal: AbortSignal): Promise<void> {
    const digest = digestOf(endpoints as unknown as Json);
    if (this.#appliedEndpoint === digest) return;
    const { metadata, ...rest } = endpointsConfigMap({ namespace: this.#deps.config.namespace, endpoints });
    const object = { ...rest, metadata: { ...metadata, ownerReferences: [await this.#owner(signal)] } };
    const { client, config } = this.#deps;
    const ref = { namespace: config.namespace, name: metadata.name };
    const current = await client.get<PlainObject>(TYPES.configMaps, ref, signal);
    // A new leader finds what the one before applied.
    if (!containsFields(current, object, ['data']))
      await client.apply(TYPES.configMaps, object, { manager: FIELD_MANAGER, force: true }, signal);
    this.#appliedEndpoint = digest;
  }

  /** An object of the chart: once `helm uninstall` deletes it, Kubernetes deletes the verifier pods and their ConfigMap too. */
  async #owner(signal: AbortSignal) {
    const ref = { name: RELEASE_OBJECTS.verifierServiceAccount, namespace: this.#deps.config.namespace };
    const account = await this.#deps.client.get(TYPES.serviceAccounts, ref, signal);
    if (account?.metadata.uid === undefined) {
      throw new TemperError('TEMPER_NOT_FOUND', `the ServiceAccount ${ref.name} of the chart does not exist`, {
        retry: 'backoff',
      });
    }
    return { apiVersion: 'v1', kind: 'ServiceAccount', name: ref.name, uid: account.metadata.uid };
  }
}
