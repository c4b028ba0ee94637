import { API_VERSION } from '../../api/names.ts';
import { attestationName } from '../../api/cluster.ts';
import type { EmergentTool } from '../../api/v1alpha1/emergenttool.ts';
import type { ApprovalRecord } from '../../approvals/approval-record.ts';
import type { SignedHead } from '../../audit/stream-chain.ts';
import { ApiError, type KubeClient } from '../../kube/client/kube-client.ts';
import type { Clock } from '../../lib/clock.ts';
import { readAttestationKey, sealStatement } from '../../tempering/attestation/envelope.ts';
import { sharedToolStatement } from '../../tempering/attestation/statement.ts';
import { artifactDigest } from '../../tempering/registry/serialization.ts';
import { FIELD_MANAGER, MANAGED_LABEL, type Stored, TYPES } from '../kube/types.ts';
import type { StoredTool } from '../tool/stored-tool.ts';
import { promotionEvidence } from './promotion-evidence.ts';

export interface AttestationDeps {
  readonly client: Pick<KubeClient, 'get' | 'create'>;
  readonly clock: Clock;
  /** All tools in service at tier Shared. */
  readonly sharedTools: () => readonly StoredTool[];
  /** The Approval that counts for a tool; undefined when none does. */
  readonly approvalOf: (tool: StoredTool) => ApprovalRecord | undefined;
  /** The name of the ApprovalRequest that the tool comes from; undefined when it is gone. */
  readonly requestOf: (tool: StoredTool) => string | undefined;
}

/** The last signed head, and the key that signed it. */
export interface HeadSigner {
  readonly head: SignedHead;
  /** PEM. */
  readonly privateKey: string;
}

/** The member of the ConfigMap. */
const MEMBER = 'attestation.json';
/** Requests to the API server in one round; the others follow in the next one. */
const MAX_PER_ROUND = 50;

/**
 * Attests the tools in service at tier Shared. The attestation is an immutable ConfigMap beside the object, which owns it: nothing of an
 * object from Git is written, and the signature proves it wherever it is stored. It is made once the head of the audit stream covers the
 * records of the approval, and never again for the same object.
 */
export class ToolAttestations {
  readonly #deps: AttestationDeps;
  #done: ReadonlySet<string> = new Set();

  constructor(deps: AttestationDeps) {
    this.#deps = deps;
  }

  /** Attests the tools that the head covers; asks for the signer only when one waits. Throws ApiError; the next round continues. */
  async round(signerOf: () => Promise<HeadSigner | undefined>, signal: AbortSignal): Promise<void> {
    const tools = this.#deps.sharedTools();
    const uids = new Set(tools.map(({ metadata }) => metadata.uid));
    this.#done = new Set([...this.#done].filter((uid) => uids.has(uid)));
    const waiting = tools.filter(({ metadata }) => !this.#done.has(metadata.uid));
    const signer = waiting.length === 0 ? undefined : await signerOf();
    if (signer === undefined) return;
    const due = waiting.filter((tool) => isCovered(tool, signer.head));
    for (const tool of due.slice(0, MAX_PER_ROUND)) {
      const isDone = await this.#attest(tool, signer, signal);
      if (isDone) this.#done = new Set([...this.#done, tool.metadata.uid]);
    }
  }

  async #attest(tool: StoredTool, { head, privateKey }: HeadSigner, signal: AbortSignal): Promise<boolean> {
    const { client, clock, approvalOf, requestOf } = this.#deps;
    const approval = approvalOf(tool);
    if (approval === undefined) return false;
    const { name, namespace, uid } = tool.metadata;
    const stored = await client.get<Stored<EmergentTool>>(TYPES.emergentTools, { namespace, name }, signal);
    if (stored?.metadata.uid !== uid) return false;
    const { artifact } = stored.spec;
    const { digest, contributors } = tool.facts;
    if (artifactDigest(artifact) !== digest) return false;
    const facts = {
      name: artifact.name,
      digest,
      namespace,
      tests: artifact.tests.length,
      contributors,
      approval,
      head,
      ...(await promotionEvidence(client, tool, requestOf(tool), signal)),
    };
    const statement = sharedToolStatement(facts, clock.now().toISOString());
    const envelope = sealStatement(statement, readAttestationKey(privateKey));
    await client
      .create(TYPES.configMaps, configMap(tool, envelope), signal, { manager: FIELD_MANAGER })
      .catch((error: unknown) => {
        if (!(error instanceof ApiError && error.reason === 'AlreadyExists')) throw error;
      });
    return true;
  }
}

/** The head was signed after the tool came into service. */
function isCovered({ status }: StoredTool, { time }: SignedHead): boolean {
  const since = status?.conditions?.find(({ type }) => type === 'Active')?.lastTransitionTime ?? '';
  return Date.parse(time) > Date.parse(since);
}

function configMap({ metadata: { name, namespace, uid } }: StoredTool, envelope: string): object {
  const owner = { apiVersion: API_VERSION, kind: 'EmergentTool', name, uid };
  const metadata = {
    name: attestationName({ name, uid }),
    namespace,
    labels: { ...MANAGED_LABEL },
    ownerReferences: [owner],
  };
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata, immutable: true, data: { [MEMBER]: envelope } };
}
