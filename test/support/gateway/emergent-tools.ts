import assert from 'node:assert/strict';
import type { ToolArtifact } from '../../../src/api/v1alpha1/emergenttool.ts';
import { objectName } from '../../../src/tempering/registry/object-name.ts';
import { artifactDigest } from '../../../src/tempering/registry/serialization.ts';
import type { GatewayFixture } from './gateway-fixture.ts';

const TEMPER = '/apis/temper.dev/v1alpha1/namespaces';
const NONCE = 'k4q7pWm2Zc8vN1xRt6Yb';

interface CreatedToolOptions {
  isApproved?: boolean;
  agent?: string;
  namespace?: string;
  digest?: ReturnType<typeof artifactDigest>;
  name?: string;
}

/** EmergentTools and the Approvals of them, as promotions and users create them. */
export class EmergentTools {
  readonly #fixture: GatewayFixture;
  readonly #namespace: string;

  constructor(fixture: GatewayFixture, namespace: string) {
    this.#fixture = fixture;
    this.#namespace = namespace;
  }

  /** Creates an active EmergentTool as a promotion does, and returns its name. */
  async create(
    artifact: ToolArtifact,
    {
      agent,
      namespace = this.#namespace,
      digest = artifactDigest(artifact),
      name,
      isApproved = true,
    }: CreatedToolOptions = {},
  ): Promise<string> {
    const tier = agent === undefined ? 'Shared' : 'Agent';
    const named = name ?? objectName(artifact.name, tier, `${namespace}/${agent ?? ''}`, digest);
    await this.#fixture.create(`${TEMPER}/${namespace}/emergenttools`, {
      apiVersion: 'temper.dev/v1alpha1',
      kind: 'EmergentTool',
      metadata: { name: named, ...(agent === undefined ? {} : { labels: { 'temper.dev/agent': agent } }) },
      spec: {
        artifact,
        digest,
        tier,
        contributors: ['agent/analyst'],
        ...(agent === undefined ? { requestNonce: NONCE } : {}),
      },
    });
    if (agent === undefined && isApproved) await this.decide(artifact, 'Approve', namespace);
    await this.setActive(named, true, namespace);
    return named;
  }

  async decide(
    artifact: ToolArtifact,
    decision: 'Approve' | 'Revoke',
    namespace = this.#namespace,
    nonce = NONCE,
  ): Promise<void> {
    const promotion = { tool: artifact.name, digest: artifactDigest(artifact), tier: 'Shared' };
    await this.#fixture.create(`${TEMPER}/${namespace}/approvals`, {
      apiVersion: 'temper.dev/v1alpha1',
      kind: 'Approval',
      metadata: { name: `${artifact.name.replaceAll('_', '-')}-${decision.toLowerCase()}-${nonce.slice(0, 2)}` },
      spec: { decision, nonce, approvedBy: { username: 'alice' }, subject: { promotion } },
    });
  }

  async setActive(name: string, active: boolean, namespace = this.#namespace): Promise<void> {
    const path = `${TEMPER}/${namespace}/emergenttools/${name}`;
    const { body: object } = await this.#fixture.plane.admin.call('GET', path);
    const { status } = await this.#fixture.plane.admin.call('PUT', `${path}/status`, {
      body: { ...object, status: { active } },
    });
    assert.equal(status, 200);
  }
}
