import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { loadManifests } from '../../../src/api/manifests.ts';
import type { ApiResponse, ApiObject } from '../../cluster/api-client.ts';
import { type ControlPlane, startControlPlane } from '../../cluster/control-plane.ts';
import { INVALID_OBJECTS, type InvalidObject } from '../../support/api-server/invalid-objects.ts';
import { schemaBounds, fieldPath, withValueAt } from '../../support/api-server/schema-bounds.ts';
import { kstatusOf } from '../../support/kstatus.ts';
import { pollValue } from '../../support/poll.ts';

interface Column {
  readonly name: string;
  readonly priority?: number;
}

interface Crd extends ApiObject {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly names: { kind: string; plural: string; shortNames: string[]; categories: string[] };
    readonly versions: [{ schema: { openAPIV3Schema: ApiObject }; additionalPrinterColumns: Column[] }];
  };
}

interface Sample extends ApiObject {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

interface Cause {
  readonly field: string;
  readonly message: string;
}

const ROOT = new URL('../../../', import.meta.url);
const CRDS = readFolder<Crd>('crds/');
const SAMPLES = readFolder<Sample>('manifests/samples/');
/** One object of each kind, and the configuration of another program. */
const NOT_RUN: readonly string[] = ['samples', 'prometheus'];
const TABLE = 'application/json;as=Table;g=meta.k8s.io;v=v1';
const CRD_PATH = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

describe('the custom resources on a real API server', () => {
  let plane: ControlPlane;
  const call: ControlPlane['admin']['call'] = (...args) => plane.admin.call(...args);

  before(async () => {
    plane = await startControlPlane();
    for (const crd of CRDS.values()) {
      const { status, body } = await call('POST', CRD_PATH, { body: crd });
      assert.equal(status, 201, `${crd.metadata.name}: ${String(body['message'])}`);
    }
    for (const crd of CRDS.values()) await waitUntilServed(plane, crd);
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'team-a' } };
    assert.equal((await call('POST', '/api/v1/namespaces', { body: namespace })).status, 201);
  });

  after(async () => {
    await plane?.[Symbol.asyncDispose]();
  });

  it('the API server stores every sample unchanged', async () => {
    for (const [file, sample] of SAMPLES) {
      const { status, body } = await call('POST', collection(sample), { body: sample });
      assert.equal(status, 201, `${file}: ${String(body['message'])}`);
      const kept = (await call('GET', address(sample))).body;
      const { metadata, ...rest } = kept;
      const { metadata: sent, ...sentRest } = sample;
      const added = defaultStatusOf(sample.kind);
      assert.deepEqual(rest, added === undefined ? sentRest : { ...sentRest, status: added }, file);
      const { name } = metadata as Sample['metadata'];
      assert.equal(name, sent.name);
    }
  });

  it('the API server accepts the agents and policies of every sample that runs', async () => {
    const folders = readdirSync(new URL('manifests/', ROOT)).filter((name) => !NOT_RUN.includes(name));
    const { objects } = await loadManifests(folders.map((name) => fileURLToPath(new URL(`manifests/${name}`, ROOT))));
    assert.ok(objects.length >= 2 * folders.length - 1, `${objects.length} objects of ${folders.join()}`);
    for (const { object, file } of objects) {
      const path = `${collection(object as unknown as Sample)}?dryRun=All&fieldValidation=Strict`;
      const { status, body } = await call('POST', path, { body: object });
      assert.equal(status, 201, `${file}: ${String(body['message'])}`);
    }
  });

  for (const [kind, condition] of [
    ['Agent', 'Ready'],
    ['TrustPolicy', 'Ready'],
    ['Capability', 'Available'],
  ] as const) {
    it(`a new ${kind} is Pending from its first read, in its conditions and in a table`, async () => {
      const sample = renamed(sampleOf(kind)) as Sample;
      const created = await call('POST', collection(sample), { body: sample });
      assert.equal(created.status, 201, String(created.body['message']));
      const read = await call('GET', address(sample));
      for (const { body } of [created, read]) {
        assert.deepEqual(body['status'], defaultStatusOf(kind));
        const metadata = body['metadata'] as { generation: number };
        assert.equal(kstatusOf({ metadata, status: body['status'] as object }), 'InProgress');
      }
      const { body: table } = await call('GET', address(sample), { accept: TABLE });
      const names = (table['columnDefinitions'] as Column[]).map(({ name }) => name);
      const [row] = table['rows'] as { cells: unknown[] }[];
      assert.deepEqual(
        [row?.cells[names.indexOf(condition)], row?.cells[names.indexOf('Reason')]],
        ['Unknown', 'Pending'],
      );
      assert.equal((await call('DELETE', address(sample))).status, 200);
    });
  }

  it('every CEL rule has an invalid object in this test', () => {
    const rules = [...CRDS.values()].flatMap((crd) =>
      messagesOf(schemaOf(crd)).map((rule) => `${kindOf(crd)}: ${rule}`),
    );
    const tried = INVALID_OBJECTS.map(({ kind, message }) => `${kind}: ${message}`);
    assert.deepEqual([...new Set(tried)].sort(), [...new Set(rules)].sort());
  });

  for (const bad of INVALID_OBJECTS) {
    it(`the API server rejects ${bad.kind} with ${Object.keys(bad.change).join(', ')} changed: ${bad.message}`, async () => {
      const answer = await sendInvalid(plane, bad);
      assert.equal(answer.status, 422, JSON.stringify(answer.body));
      const messages = causesOf(answer).map(({ message }) => message);
      assert.ok(
        messages.some((message) => message.endsWith(`: ${bad.message}`)),
        messages.join('\n'),
      );
    });
  }

  for (const crd of CRDS.values()) {
    it(`the API server rejects a ${kindOf(crd)} that violates any bound of its schema`, async () => {
      const sample = sampleOf(kindOf(crd));
      const { spec, status } = schemaOf(crd)['properties'] as Record<string, ApiObject>;
      assert.ok(spec !== undefined && status !== undefined);
      const all = [...schemaBounds(spec, ['spec']), ...schemaBounds(status, ['status'])];
      assert.ok(all.length > 20, `${all.length} bounds`);
      const accepted: string[] = [];
      for (const { path, keyword, invalid, message: pattern } of all) {
        const body = withValueAt(sample, path, invalid);
        const isStatus = path[0] === 'status';
        const answer = isStatus
          ? await call('PUT', `${address(sample)}/status?dryRun=All`, { body: await current(plane, body as Sample) })
          : await call('POST', `${collection(sample)}?dryRun=All`, { body: renamed(body) });
        const seen = causesOf(answer).some(
          ({ field, message }) => sameField(field, fieldPath(path)) && pattern.test(message),
        );
        if (answer.status !== 422 || !seen)
          accepted.push(`${fieldPath(path)} ${keyword}: ${JSON.stringify(answer.body)}`);
      }
      assert.deepEqual(accepted, []);
    });

    it(`a table of ${kindOf(crd)} has the printer columns`, async () => {
      const { body } = await call('GET', collection(sampleOf(kindOf(crd))), { accept: TABLE });
      const columns = (body['columnDefinitions'] as Column[]).map(({ name, priority }) => [name, priority ?? 0]);
      const expected = crd.spec.versions[0].additionalPrinterColumns.map(({ name, priority }) => [name, priority ?? 0]);
      assert.deepEqual(columns, [['Name', 0], ...expected]);
      assert.ok((body['rows'] as unknown[]).length > 0);
    });

    it(`spec and status of ${kindOf(crd)} are written separately`, async () => {
      const sample = sampleOf(kindOf(crd));
      const status = { observedGeneration: 1 };
      const written = await call('PUT', address(sample), { body: await current(plane, { ...sample, status }) });
      assert.equal(written.status, 200, String(written.body['message']));
      assert.notDeepEqual(written.body['status'], status, 'status written through the object');
      // The invalid spec shows that a status update ignores it.
      const body = await current(plane, { ...sample, spec: 'unread', status });
      const reported = await call('PUT', `${address(sample)}/status`, { body });
      assert.equal(reported.status, 200, String(reported.body['message']));
      assert.deepEqual(reported.body['status'], status);
      assert.deepEqual(reported.body['spec'], sample['spec']);
      assert.equal((reported.body['metadata'] as ApiObject)['generation'], 1, 'a status update keeps the generation');
    });
  }

  it('API discovery lists short names and the category', async () => {
    const { body } = await call('GET', '/apis/temper.dev/v1alpha1');
    const resources = (body['resources'] as ApiObject[]).filter(({ name }) => !String(name).includes('/'));
    const found = resources.map(({ name, kind, shortNames, categories }) => ({ name, kind, shortNames, categories }));
    const expected = [...CRDS.values()].map(({ spec: { names } }) => ({
      name: names.plural,
      kind: names.kind,
      shortNames: names.shortNames,
      categories: names.categories,
    }));
    const byName = (a: { name: unknown }, b: { name: unknown }) => String(a.name).localeCompare(String(b.name));
    assert.deepEqual(found.sort(byName), expected.sort(byName));
  });
});

function readFolder<T>(folder: string): ReadonlyMap<string, T> {
  const files = readdirSync(new URL(folder, ROOT)).filter((file) => file.endsWith('.yaml'));
  return new Map(files.map((file) => [file, parse(readFileSync(new URL(folder + file, ROOT), 'utf8')) as T]));
}

/** The status that the API server adds to an object without a status. */
function defaultStatusOf(kind: string): unknown {
  const crd = [...CRDS.values()].find((candidate) => kindOf(candidate) === kind);
  assert.ok(crd !== undefined);
  return (schemaOf(crd)['properties'] as Record<string, ApiObject>)['status']?.['default'];
}

function kindOf(crd: Crd): string {
  return crd.spec.names.kind;
}

function schemaOf(crd: Crd): ApiObject {
  return crd.spec.versions[0].schema.openAPIV3Schema;
}

/** The messages of the CEL rules anywhere in a schema. */
function messagesOf(schema: unknown): string[] {
  if (typeof schema !== 'object' || schema === null) return [];
  const own = ((schema as ApiObject)['x-kubernetes-validations'] ?? []) as { message: string }[];
  return [...own.map(({ message }) => message), ...Object.values(schema).flatMap(messagesOf)];
}

/** The most complete sample of a kind: the file with the kind as its name. */
function sampleOf(kind: string): Sample {
  const files = [`${kind.toLowerCase()}.yaml`, `${kind.toLowerCase()}-tool.yaml`];
  const sample = files.map((file) => SAMPLES.get(file)).find((found) => found !== undefined);
  assert.ok(sample !== undefined, `no sample of ${kind}`);
  return sample;
}

function collection({ kind, metadata }: Sample): string {
  const crd = [...CRDS.values()].find((candidate) => kindOf(candidate) === kind);
  assert.ok(crd !== undefined, `no CRD of ${kind}`);
  return `/apis/temper.dev/v1alpha1/namespaces/${metadata.namespace ?? 'default'}/${crd.spec.names.plural}`;
}

function address(sample: Sample): string {
  return `${collection(sample)}/${sample.metadata.name}`;
}

function renamed(object: ApiObject): ApiObject {
  return withValueAt(object, ['metadata', 'name'], 'another');
}

/** A copy with the current resourceVersion, so that an update succeeds. */
async function current(plane: ControlPlane, object: Sample): Promise<ApiObject> {
  const { body } = await plane.admin.call('GET', address(object));
  const { resourceVersion } = body['metadata'] as { resourceVersion: string };
  return withValueAt(object, ['metadata', 'resourceVersion'], resourceVersion);
}

async function sendInvalid(plane: ControlPlane, { sample: file, change, update }: InvalidObject): Promise<ApiResponse> {
  const sample = SAMPLES.get(file);
  assert.ok(sample !== undefined, file);
  const start = update === true ? sample : renamed(sample);
  const body = Object.entries(change).reduce(
    (object, [path, value]) => withValueAt(object, path.split('.'), value),
    start,
  );
  if (update !== true) return plane.admin.call('POST', `${collection(sample)}?dryRun=All`, { body });
  return plane.admin.call('PUT', address(sample), { body: await current(plane, body as Sample) });
}

function causesOf({ body }: ApiResponse): readonly Cause[] {
  return (body['details'] as { causes?: Cause[] } | undefined)?.causes ?? [];
}

/** For a list the API server reports either the list or its second entry. */
function sameField(reported: string, expected: string): boolean {
  return reported === expected || reported === `${expected}[1]`;
}

async function waitUntilServed(plane: ControlPlane, crd: Crd): Promise<void> {
  const readConditions = async () => {
    const { body } = await plane.admin.call('GET', `${CRD_PATH}/${crd.metadata.name}`);
    return ((body['status'] as ApiObject | undefined)?.['conditions'] ?? []) as ApiObject[];
  };
  const isTrue = (conditions: ApiObject[], name: string) =>
    conditions.some(({ type, status }) => type === name && status === 'True');
  const conditions = await pollValue(`${crd.metadata.name} to be established`, readConditions, (found) =>
    isTrue(found, 'Established'),
  );
  assert.ok(!isTrue(conditions, 'NonStructuralSchema'));
  const path = `/apis/temper.dev/v1alpha1/${crd.spec.names.plural}`;
  await pollValue(
    `${crd.metadata.name} to be served`,
    () => plane.admin.call('GET', path),
    ({ status }) => status === 200,
  );
}
