import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { after, afterEach, before, describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../test/support/stubs.ts';
import type { CallOptions } from '../lib/call-options.ts';
import { sha256 } from '../lib/canonical.ts';
import { systemClock } from '../lib/clock.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import { isTemperError } from '../lib/errors.ts';
import type { Network } from '../net/dialer.ts';
import { parseChallenges } from './challenge.ts';
import { credentialIn } from './docker-config.ts';
import { ATTESTATION, artifactManifest, descriptorOf, INDEX_TYPE, MANIFEST_TYPE, TOOL } from './manifest.ts';
import { pullAttestations, pullTool } from './pull.ts';
import { pushTool, type ToolFiles } from './push.ts';
import { originOf, parseReference } from './reference.ts';
import { clientFor, type FakeRegistry, REPOSITORY, startFakeRegistry } from './registry.testing.ts';

const FILES: ToolFiles = {
  package: '{"tool":"double"}',
  attestation: '{"payload":"signed"}',
  name: 'double',
  toolDigest: sha256('artifact'),
  created: '2026-03-01T09:00:00.000Z',
};
const SECRET = 'hunter-2-secret';
const credential = { username: 'kim', password: SECRET };

function op(): CallOptions {
  return { signal: NEVER_ABORTED, deadline: systemClock.monotonic() + 20_000, key: 'test' };
}

let registry: FakeRegistry;
before(async () => {
  registry = await startFakeRegistry();
});
after(() => registry[Symbol.asyncDispose]());
afterEach(() => {
  registry.hostile = () => false;
  registry.keepsReferrers = true;
  registry.requests.length = 0;
  registry.blobs.clear();
  registry.manifests.clear();
});

async function failsWith(code: ErrorCode, work: Promise<unknown>, words: RegExp): Promise<void> {
  await assert.rejects(work, (error) => {
    assert.ok(isTemperError(error), String(error));
    assert.equal(error.code, code, error.message);
    assert.match(error.message, words);
    assert.ok(!error.message.includes(SECRET), error.message);
    return true;
  });
}

const push = (changes = {}, files = FILES) => {
  const { client, reference } = clientFor(registry, changes);
  return pushTool(client, reference, files, op());
};
const pull = (changes = {}, name = ':v1') => {
  const { client, reference } = clientFor(registry, changes, name);
  return pullTool(client, reference, op());
};

describe('a push and a pull of an OCI artifact', () => {
  for (const keepsReferrers of [true, false]) {
    it(`the files and their attestation arrive, from a registry that ${keepsReferrers ? 'keeps' : 'keeps no'} referrers`, async () => {
      registry.keepsReferrers = keepsReferrers;
      const digest = await push();
      const { client } = clientFor(registry);
      assert.deepEqual(await pull(), { digest, package: FILES.package });
      assert.deepEqual(await pull({}, `@${digest}`), { digest, package: FILES.package });
      assert.deepEqual(await pullAttestations(client, digest, op()), [FILES.attestation]);
      assert.equal(registry.manifests.has(digest.replace(':', '-')), !keepsReferrers);
    });
  }

  it('the manifest has the form that the image specification gives artifacts', async () => {
    await push();
    const manifest = JSON.parse(registry.manifests.get('v1') ?? '') as Record<string, unknown>;
    assert.deepEqual(manifest, {
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      artifactType: 'application/vnd.temper.tool.v1',
      config: {
        mediaType: 'application/vnd.oci.empty.v1+json',
        digest: 'sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a',
        size: 2,
        data: 'e30=',
      },
      layers: [
        {
          mediaType: 'application/vnd.temper.tool.package.v1+json',
          digest: sha256(FILES.package),
          size: FILES.package.length,
          annotations: { 'org.opencontainers.image.title': 'double.json' },
        },
      ],
      annotations: { 'org.opencontainers.image.created': FILES.created, 'dev.temper.tool.digest': FILES.toolDigest },
    });
  });

  it('a second push sends no blob again, and adds no second entry to the list of a tag', async () => {
    registry.keepsReferrers = false;
    const digest = await push();
    registry.requests.length = 0;
    assert.equal(await push(), digest);
    assert.deepEqual(
      registry.requests.filter(({ line }) => line.startsWith('POST')),
      [],
    );
    const index = JSON.parse(registry.manifests.get(digest.replace(':', '-')) ?? '') as { manifests: unknown[] };
    assert.equal(index.manifests.length, 1);
  });

  it('a push that fails before its last request leaves the tag as it was', async () => {
    const first = await push();
    registry.hostile = (request, response) => {
      const fails = request.method === 'PUT' && request.url?.endsWith('/manifests/v1') === true;
      if (fails) response.writeHead(500).end();
      return fails;
    };
    await failsWith('TEMPER_OCI_FAILED', push({}, { ...FILES, package: '{"tool":"triple"}' }), /answered 500/);
    registry.hostile = () => false;
    assert.equal((await pull()).digest, first);
  });

  it('a reference that the registry does not have is not found', async () => {
    await failsWith('TEMPER_NOT_FOUND', pull(), /no manifest v1/);
    await push();
    registry.blobs.clear();
    await failsWith('TEMPER_NOT_FOUND', pull(), /no blob sha256/);
    assert.deepEqual(await pullAttestations(clientFor(registry).client, sha256('x'), op()), []);
  });
});

describe('the credential for a registry', () => {
  const challenge = (header: string, accepts: string) => (request: IncomingMessage, response: ServerResponse) => {
    if (request.url?.startsWith('/token') === true) return false;
    const isAccepted = request.headers.authorization === accepts;
    if (!isAccepted) response.writeHead(401, { 'www-authenticate': header }).end();
    return !isAccepted;
  };
  const BASIC = `Basic ${Buffer.from(`kim:${SECRET}`).toString('base64')}`;

  it('a registry that asks for Basic gets the credential, and one that asks for nothing does not', async () => {
    await push({ credentials: async () => credential });
    assert.ok(registry.requests.every(({ authorization }) => authorization === undefined));
    registry.hostile = challenge('Basic realm="registry"', BASIC);
    await push({ credentials: async () => credential });
    await failsWith('TEMPER_OCI_UNAUTHORIZED', push(), /wants a credential/);
    await failsWith(
      'TEMPER_OCI_UNAUTHORIZED',
      push({ credentials: async () => ({ ...credential, username: 'lee' }) }),
      /answered 401/,
    );
  });

  it('a registry that asks for a token gets one with the scope of the command, whatever scope it asks for', async () => {
    const realm = `http://localhost:${registry.port}/token`;
    const isToken = challenge(`Bearer realm="${realm}",service="s",scope="repository:other:delete"`, 'Bearer abc');
    registry.hostile = (request, response) => {
      if (request.url?.startsWith('/token') !== true) return isToken(request, response);
      const { searchParams } = new URL(request.url, realm);
      const isRight =
        searchParams.get('scope') === `repository:${REPOSITORY}:pull,push` && searchParams.get('service') === 's';
      response.writeHead(isRight && request.headers.authorization === BASIC ? 200 : 403).end('{"token":"abc"}');
      return true;
    };
    await push({ credentials: async () => credential });
    assert.ok(registry.requests.every(({ line, authorization }) => !line.includes('/v2/') || authorization !== BASIC));
    await failsWith('TEMPER_OCI_UNAUTHORIZED', push(), /no token from its token service/);
  });

  for (const realm of [
    'http://169.254.169.254/token',
    'https://127.0.0.1/token',
    'http://auth.example.com/token',
    'file:///etc',
    '',
  ]) {
    it(`the credential does not go to the token service "${realm}"`, async () => {
      registry.hostile = challenge(`Bearer realm="${realm}"`, 'never');
      const asked: string[] = [];
      const network: Network = {
        resolve: async () => ['127.0.0.1'],
        connect: (address, port) => (asked.push(`${address}:${port}`), loopback(port)),
      };
      await assert.rejects(
        push({ network, credentials: async () => credential }),
        (error) => isTemperError(error) && error.code.startsWith('TEMPER_OCI_'),
      );
      assert.deepEqual([...new Set(asked)], [`127.0.0.1:${registry.port}`]);
    });
  }

  it('a blob of another host is requested over TLS at its public address', async () => {
    await push();
    registry.hostile = (request, response) => {
      const isBlob = request.url?.includes('/blobs/') === true;
      if (isBlob) response.writeHead(307, { location: 'https://store.example.com/b' }).end();
      return isBlob;
    };
    const dialled: string[] = [];
    const network: Network = {
      resolve: async (host) => [host === 'localhost' ? '127.0.0.1' : '93.184.215.14'],
      connect: (address, port) => (dialled.push(`${address}:${port}`), loopback(registry.port)),
    };
    // The fake registry does not speak TLS: the connection is what counts here.
    await failsWith('TEMPER_OCI_FAILED', pull({ network }), /the request failed/);
    assert.deepEqual(dialled.at(-1), '93.184.215.14:443');
  });

  it('an entry of the Docker configuration file is found by host and port, and helpers are refused', () => {
    const auth = Buffer.from(`kim:${SECRET}:colon`).toString('base64');
    const config = JSON.stringify({
      auths: {
        'localhost:5000': { auth },
        'https://index.docker.io/v1/': { auth },
        empty: {},
        odd: { auth: 'eA==' },
        token: { identitytoken: 'x' },
      },
      credHelpers: { 'ecr.example.com': 'ecr' },
    });
    assert.deepEqual(credentialIn(config, 'localhost:5000'), { username: 'kim', password: `${SECRET}:colon` });
    assert.deepEqual(credentialIn(config, 'registry-1.docker.io')?.username, 'kim');
    assert.equal(credentialIn(config, 'localhost'), undefined);
    assert.equal(credentialIn(config, 'empty'), undefined);
    const refused: [text: string, host: string, words: RegExp][] = [
      [config, 'ecr.example.com', /credential helper, which is not run/],
      ['{"credsStore":"desktop"}', 'any', /credential helper/],
      [config, 'odd', /no valid auth/],
      [config, 'token', /identitytoken/],
      ['{', 'any', /not JSON/],
      ['['.repeat(100), 'any', /not JSON/],
    ];
    for (const [text, host, words] of refused)
      assert.throws(
        () => credentialIn(text, host),
        (error) =>
          isTemperError(error, 'TEMPER_OCI_UNAUTHORIZED') &&
          words.test(error.message) &&
          !error.message.includes(SECRET),
      );
  });

  it('a challenge is read in linear time, whatever its form', () => {
    assert.deepEqual(parseChallenges('Basic realm="a, b", Bearer realm="https://x/y",service=s'), [
      { scheme: 'basic', parameters: { realm: 'a, b' } },
      { scheme: 'bearer', parameters: { realm: 'https://x/y', service: 's' } },
    ]);
    for (const hostile of [' '.repeat(8_000), 'a'.repeat(8_000), `a ${'b="'.repeat(2_000)}`, 'a '.repeat(4_000), '"']) {
      assert.ok(parseChallenges(hostile).length <= 9);
    }
    assert.equal(Object.getPrototypeOf(parseChallenges('a __proto__="x"')[0]?.parameters), Object.prototype);
  });
});

function loopback(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port }, () => resolve(socket));
    socket.once('error', reject);
  });
}

describe('a hostile registry', () => {
  /** Serves these manifests by tag `v1` and any blob as the given text. */
  function serve(manifest: string, blob = FILES.package): void {
    registry.manifests.set('v1', manifest);
    registry.blobs.set(sha256(FILES.package), blob);
  }
  const manifest = (changes: object): string =>
    JSON.stringify({
      ...(JSON.parse(artifactManifest(TOOL, [{ title: 'x', text: FILES.package }], { annotations: {} })) as object),
      ...changes,
    });
  const layer = { ...descriptorOf(TOOL.layerType, FILES.package) };
  const layers = (...changed: object[]): string =>
    manifest({ layers: changed.map((change) => ({ ...layer, ...change })) });

  const invalid: Record<string, [manifest: string, words: RegExp]> = {
    'an image': [
      manifest({ artifactType: 'application/vnd.oci.image.config.v1+json' }),
      /not pushed by temper tool push/,
    ],
    'an index': [manifest({ mediaType: INDEX_TYPE }), /several platforms/],
    'a foreign layer': [
      layers({
        mediaType: 'application/vnd.docker.image.rootfs.foreign.diff.tar.gzip',
        urls: ['http://169.254.169.254/'],
      }),
      /not one layer/,
    ],
    'no layer': [layers(), /1 to 16 layers/],
    'two packages': [layers({}, {}), /not one layer/],
    'layers without end': [layers(...Array.from({ length: 1_000 }, () => ({}))), /1 to 16 layers/],
    'a layer of a terabyte': [layers({ size: 2 ** 40 }), /larger than/],
    'a layer of a negative size': [layers({ size: -1 }), /no valid mediaType/],
    'a layer of a broken size': [layers({ size: 0.5 }), /no valid mediaType/],
    'a digest that is a path': [layers({ digest: '../../../../etc/passwd' }), /no valid mediaType/],
    'a digest of another algorithm': [layers({ digest: `sha512:${'0'.repeat(128)}` }), /no valid mediaType/],
    'a text': ['<html>login</html>', /not a JSON object/],
    'a list': ['[]', /not a JSON object/],
    'a manifest of great depth': ['['.repeat(50_000), /not a JSON object/],
    'a manifest of many members': [`{"a":[${'0,'.repeat(100_000)}0]}`, /not a JSON object/],
  };
  for (const [what, [text, words]] of Object.entries(invalid)) {
    it(`a pull refuses ${what}`, async () => {
      serve(text);
      await failsWith('TEMPER_OCI_CONTENT_INVALID', pull(), words);
    });
  }

  it('a pull refuses content that does not have its digest or its size', async () => {
    serve(manifest({}), FILES.package.replace('double', 'triple'));
    await failsWith('TEMPER_OCI_CONTENT_INVALID', pull(), /does not have the digest/);
    serve(layers({ size: FILES.package.length + 1 }));
    await failsWith('TEMPER_OCI_CONTENT_INVALID', pull(), /does not have the digest/);
    const other = sha256('another manifest');
    registry.manifests.set(other, manifest({}));
    await failsWith('TEMPER_OCI_CONTENT_INVALID', pull({}, `@${other}`), /does not have the digest/);
    serve(manifest({}));
    registry.hostile = (request, response) => {
      if (request.url?.includes('/manifests/') === true) response.setHeader('docker-content-digest', other);
      return false;
    };
    await failsWith('TEMPER_OCI_CONTENT_INVALID', pull(), /does not have the digest/);
  });

  it('a pull stops to read a body without end', async () => {
    let written = 0;
    registry.hostile = (_request, response) => {
      const write = (): void => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536, 32))) written += 65_536;
      };
      response.on('drain', write).on('error', () => undefined);
      write();
      return true;
    };
    await failsWith('TEMPER_OCI_FAILED', pull(), /larger than 262144 bytes/);
    assert.ok(written < 64 * 1_048_576);
  });

  for (const location of [
    'http://169.254.169.254/latest/meta-data/',
    'https://127.0.0.1/',
    'http://store.example.com/',
    'https://metadata.azure.com/',
    'file:///etc/passwd',
  ]) {
    it(`a pull does not follow a redirect to ${location}`, async () => {
      registry.hostile = (_request, response) => {
        response.writeHead(307, { location }).end();
        return true;
      };
      await failsWith('TEMPER_OCI_FAILED', pull(), /is refused/);
      assert.equal(registry.requests.length, 1);
    });
  }

  it('a push does not follow an upload to another host or port', async () => {
    for (const location of [
      'https://store.example.com/upload',
      `http://localhost:${registry.port + 1}/upload`,
      'http://[',
    ]) {
      registry.hostile = (request, response) => {
        if (request.method === 'POST') response.writeHead(202, { location }).end();
        return request.method === 'POST';
      };
      await failsWith('TEMPER_OCI_FAILED', push(), /another host|starts no upload/);
    }
  });

  it('a push refuses an answer with the digest of another manifest', async () => {
    registry.hostile = (request, response) => {
      const isManifest = request.method === 'PUT' && request.url?.includes('/manifests/') === true;
      if (isManifest) response.writeHead(201, { 'docker-content-digest': sha256('other') }).end();
      return isManifest;
    };
    await failsWith('TEMPER_OCI_CONTENT_INVALID', push(), /another digest/);
  });

  it('an error repeats a code of the registry and none of its texts', async () => {
    for (const [body, words] of [
      [`{"errors":[{"code":"DENIED","message":"${SECRET}"}]}`, /answered 503 DENIED; repeat the command later$/],
      [`{"errors":[{"code":"${SECRET}"}]}`, /answered 503; repeat the command later$/],
      [`\u001b[2J${SECRET}`, /answered 503; repeat the command later$/],
    ] as const) {
      registry.hostile = (_request, response) => {
        response.writeHead(503).end(body);
        return true;
      };
      await failsWith('TEMPER_OCI_FAILED', pull(), words);
    }
  });

  it('a pull refuses referrers that are about another manifest, and more attestations than it reads', async () => {
    const digest = await push();
    const { client } = clientFor(registry);
    const attestations = () => pullAttestations(client, digest, op());
    registry.keepsReferrers = false;
    const entry = (text: string) => ({ ...descriptorOf(MANIFEST_TYPE, text), artifactType: ATTESTATION.artifactType });
    const list = (manifests: object[]): void =>
      void registry.manifests.set(
        digest.replace(':', '-'),
        JSON.stringify({ schemaVersion: 2, mediaType: INDEX_TYPE, manifests }),
      );
    const foreign = artifactManifest(ATTESTATION, [{ title: 'x', text: FILES.package }], {
      annotations: {},
      subject: descriptorOf(MANIFEST_TYPE, 'other'),
    });
    registry.manifests.set(sha256(foreign), foreign);
    list([entry(foreign)]);
    await failsWith('TEMPER_OCI_CONTENT_INVALID', attestations(), /about another manifest/);
    list(Array(11).fill(entry(foreign)));
    await failsWith('TEMPER_OCI_CONTENT_INVALID', attestations(), /11 attestations/);
    list([{ ...entry(foreign), artifactType: 'application/spdx+json' }]);
    assert.deepEqual(await attestations(), []);
    registry.manifests.set(digest.replace(':', '-'), manifest({}));
    await failsWith('TEMPER_OCI_CONTENT_INVALID', attestations(), /not an image index/);
  });
});

describe('a reference to an OCI artifact', () => {
  it('a reference has host, port, repository and a tag or digest', () => {
    const { text: _, ...parsed } = parseReference('oci://registry.example.com:5000/team/a.b__c-d:v1');
    assert.deepEqual(parsed, {
      host: 'registry.example.com',
      port: 5_000,
      isHttps: true,
      repository: 'team/a.b__c-d',
      tag: 'v1',
    });
    assert.equal(parseReference('oci://docker.io/team/tool:v1').host, 'registry-1.docker.io');
    assert.equal(originOf(parseReference('oci://localhost:5000/a:v')), 'http://localhost:5000');
    assert.equal(originOf(parseReference('oci://a.example/a:v', { plainHttp: true })), 'http://a.example');
    assert.equal(parseReference(`oci://a.example/a@${sha256('')}`).digest, sha256(''));
  });

  for (const text of [
    'registry.example.com/a:v1',
    'https://a.example/a:v1',
    'oci://a.example',
    'oci://a.example/',
    'oci://a.example/a',
    'oci://a.example/A:v1',
    'oci://a.example/a/../b:v1',
    'oci://a.example//a:v1',
    'oci://kim:secret@a.example/a:v1',
    'oci://A.example/a:v1',
    'oci://a.example:70000/a:v1',
    'oci://a.example/a:v1:v2',
    'oci://a.example/a:v1?x=y',
    'oci://a.example/a:../v1',
    'oci://a.example/a@sha256:12',
    `oci://a.example/${'a'.repeat(256)}:v1`,
    `oci://a.example/${'a-'.repeat(50_000)}:v1`,
  ]) {
    it(`the reference ${text.slice(0, 60)} is refused`, () => {
      assert.throws(() => parseReference(text), { code: 'TEMPER_USAGE' });
    });
  }
});
