import { randomBytes } from 'node:crypto';
import { createUser, fromSeed } from '@nats-io/nkeys';
import { PORTS, RELEASE_OBJECTS } from '../../api/cluster.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import type { Clock } from '../../lib/clock.ts';
import { serverConfig } from '../../nats/server/server-config.ts';
import { DEFAULT_STORE_BYTES } from '../../nats/jetstream/topology.ts';
import type { SourceKeyring } from '../../nats/sources/source-cipher.ts';
import { parseSourceKeys, rotateSourceKeys, type SourceKey, sourceKeysText } from '../../nats/sources/source-keys.ts';
import type { OperatorConfig } from '../config.ts';
import { type PlainObject, TYPES } from '../kube/types.ts';
import type { EndpointData } from '../namespace/objects.ts';
import { type ServerNames, type KeyPair, isDue, isSignedBy, readCertificate } from './certificates.ts';
import { type CaState, caBundleOf, rotateCa } from './ca-rotation.ts';
import { type NatsLayout, natsLayout } from './nats-layout.ts';
import type { DesiredNatsServer } from './nats-reload.ts';
import { type SecretData, ReleaseSecrets } from './release-secrets.ts';
import type { TargetAuthorities } from './target-authorities.ts';
import { rotateSigningKeys, signingKeyData, signingKeysIn } from './signing-key-rotation.ts';

export interface ReleasePkiDeps {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly config: Pick<OperatorConfig, 'namespace' | 'gateway' | 'egress' | 'nats'>;
  /** Gets the keys of withheld sources. */
  readonly sourceKeys: SourceKeyring;
  /** Certificate authorities that agents trust for their targets; absent: the public ones only. */
  readonly targetAuthorities?: Pick<TargetAuthorities, 'read'>;
}

const CERTIFICATE_LIFETIME_MS = 90 * 86_400_000;
const SIGNING_KEY_BYTES = 32;
const SOURCE_KEY_BYTES = 32;
/** The member of the Secret. */
const SOURCE_KEYS = 'keys.json';
/** File paths inside the NATS server pod. */
const NATS_FILES = {
  certificateFile: '/etc/nats-tls/tls.crt',
  keyFile: '/etc/nats-tls/tls.key',
  storeFolder: '/data',
} as const;
const NATS_CA_FILE = '/etc/nats-tls/ca.crt';
const USERS = ['operator', 'gateway'] as const;
const SYSTEM_SEED = 'system.nk';

/**
 * Maintains the CA of a release, the certificates that it issues, the signing keys of the gateways, and the NATS users and configuration. One
 * reconcile creates or replaces what is missing, due for renewal or invalid, and writes nothing else.
 */
export class ReleasePki {
  readonly #deps: ReleasePkiDeps;
  readonly #secrets: ReleaseSecrets;
  readonly #expirations = new Map<string, Date>();
  #endpoints: EndpointData | undefined;
  #server: DesiredNatsServer | undefined;
  #natsConflict: string | undefined;

  constructor(deps: ReleasePkiDeps) {
    this.#deps = deps;
    this.#secrets = new ReleaseSecrets(deps.client, deps.config.namespace);
  }

  /** Addresses and CA bundle for agent pods; undefined until the gateway and the egress proxy, if there is one, have an address. */
  get endpoints(): EndpointData | undefined {
    return this.#endpoints;
  }

  /** Desired files of the NATS server of this release; undefined before the first reconcile, and with an external NATS server. */
  get natsServer(): DesiredNatsServer | undefined {
    return this.#server;
  }

  /** Why the NATS servers are not those of the configuration; undefined when they are. */
  get natsConflict(): string | undefined {
    return this.#natsConflict;
  }

  /** Expiration time of each certificate, by the name of its Secret. */
  expirations(): ReadonlyMap<string, Date> {
    return this.#expirations;
  }

  /** Returns true when an address or the CA bundle changed. Throws ApiError. */
  async reconcile(signal: AbortSignal): Promise<boolean> {
    const { config } = this.#deps;
    const { state, systemSeed } = await this.#reconcileCa(signal);
    const bundle = caBundleOf(state);
    const gateway = await this.#serviceNames(config.gateway.service, config.gateway.extraNames ?? [], signal);
    await this.#certificate(RELEASE_OBJECTS.gatewayCertificate, state, bundle, gateway, signal);
    const egress = config.egress && (await this.#serviceNames(config.egress.service, [], signal));
    if (egress !== undefined) {
      await this.#certificate(RELEASE_OBJECTS.egressCertificate, state, bundle, egress, signal);
    }
    await this.#signingKeys(signal);
    await this.#sourceKeys(signal);
    await this.#nats(state, bundle, systemSeed, signal);
    const targetAuthorities = await this.#deps.targetAuthorities?.read();
    const endpoints = endpointsOf({ gateway, egress, caBundle: bundle, targetAuthorities });
    const isChanged = JSON.stringify(endpoints) !== JSON.stringify(this.#endpoints);
    this.#endpoints = endpoints;
    return isChanged;
  }

  /** Also keeps the seed of the NATS system user, which only the operator has, to reload the server after the other keys changed. */
  async #reconcileCa(signal: AbortSignal): Promise<{ state: CaState; systemSeed: string }> {
    const known = await this.#secrets.read(RELEASE_OBJECTS.ca, signal);
    const state = await rotateCa(stateOf(known), this.#deps.clock.now());
    const systemSeed = known?.[SYSTEM_SEED] ?? newSeed();
    await this.#secrets.apply(RELEASE_OBJECTS.ca, { ...dataOf(state), [SYSTEM_SEED]: systemSeed }, known, signal);
    this.#recordExpiration(RELEASE_OBJECTS.ca, state.current.certificate);
    return { state, systemSeed };
  }

  async #certificate(
    name: string,
    state: CaState,
    bundle: string,
    desired: ServerNames,
    signal: AbortSignal,
  ): Promise<string> {
    const known = await this.#secrets.read(name, signal);
    const pair = this.#isValid(known, state, desired)
      ? { certificate: known?.['tls.crt'] ?? '', key: known?.['tls.key'] ?? '' }
      : await this.#issue(state.current, desired);
    const data = { 'tls.crt': pair.certificate, 'tls.key': pair.key, 'ca.crt': bundle };
    await this.#secrets.apply(name, data, known, signal);
    this.#recordExpiration(name, pair.certificate);
    return pair.certificate;
  }

  async #issue(ca: KeyPair, names: ServerNames): Promise<KeyPair> {
    const { issueCertificate } = await import('./certificate-issuer.ts');
    return issueCertificate(ca, names, this.#deps.clock.now(), CERTIFICATE_LIFETIME_MS);
  }

  #recordExpiration(name: string, certificate: string): void {
    const notAfter = readCertificate(certificate)?.notAfter;
    if (notAfter !== undefined) this.#expirations.set(name, notAfter);
  }

  #isValid(known: SecretData | undefined, state: CaState, desired: ServerNames): boolean {
    const text = known?.['tls.crt'];
    const facts = readCertificate(text);
    if (text === undefined || facts === undefined || known?.['tls.key'] === undefined) return false;
    if (isDue(facts, this.#deps.clock.now())) return false;
    if (!sameList(facts.names, desired.names) || !sameList(facts.addresses, desired.addresses)) return false;
    if (facts.isPeer !== (desired.isPeer ?? false)) return false;
    return isSignedBy(text, state.current.certificate);
  }

  async #signingKeys(signal: AbortSignal): Promise<void> {
    const now = this.#deps.clock.now();
    const known = await this.#secrets.read(RELEASE_OBJECTS.gatewaySigningKeys, signal);
    const newKey = (): string => randomBytes(SIGNING_KEY_BYTES).toString('base64url');
    const keys = rotateSigningKeys(signingKeysIn(known, now), now, newKey);
    await this.#secrets.apply(RELEASE_OBJECTS.gatewaySigningKeys, signingKeyData(keys), known, signal);
  }

  /** A Secret that was deleted or damaged is restored from memory: without its keys, what they encrypted is lost. */
  async #sourceKeys(signal: AbortSignal): Promise<void> {
    const { sourceKeys: keyring, clock } = this.#deps;
    const known = await this.#secrets.read(RELEASE_OBJECTS.sourceKeys, signal);
    const newKey = () => ({ id: randomBytes(8).toString('hex'), key: randomBytes(SOURCE_KEY_BYTES) });
    const stored = sourceKeysIn(known?.[SOURCE_KEYS]) ?? keyring.keys;
    const keys = rotateSourceKeys(stored, keyring.inUse, clock.now(), newKey);
    await this.#secrets.apply(RELEASE_OBJECTS.sourceKeys, { [SOURCE_KEYS]: sourceKeysText(keys) }, known, signal);
    keyring.keys = keys;
  }

  /** Only for the NATS server of this release: an external server has its own keys. */
  async #nats(state: CaState, bundle: string, systemSeed: string, signal: AbortSignal): Promise<void> {
    const { namespace, nats } = this.#deps.config;
    if (nats?.service === undefined) return;
    const { service, url, replicas = 1, server = {} } = nats;
    const configuration = await this.#secrets.read(RELEASE_OBJECTS.natsConfiguration, signal);
    const layout = natsLayout({ namespace, url, replicas }, configuration);
    this.#natsConflict = layout.conflict;
    const names = await this.#serviceNames(service, [...(server.extraNames ?? []), ...layout.hosts], signal);
    const desired = { ...names, isPeer: layout.hosts.length > 0 };
    const certificate = await this.#certificate(RELEASE_OBJECTS.natsCertificate, state, bundle, desired, signal);
    const known = await this.#secrets.read(RELEASE_OBJECTS.natsUsers, signal);
    const seeds = Object.fromEntries(USERS.map((user) => [user, known?.[`${user}.nk`] ?? newSeed()]));
    const files = Object.fromEntries(USERS.map((user) => [`${user}.nk`, seeds[user] ?? '']));
    await this.#secrets.apply(RELEASE_OBJECTS.natsUsers, files, known, signal);
    const text = serverConfig({
      users: USERS.map((name) => ({ name, publicKey: publicKeyOf(seeds[name] ?? '') })),
      systemKey: publicKeyOf(systemSeed),
      ...NATS_FILES,
      storeBytes: server.storeBytes ?? DEFAULT_STORE_BYTES,
      port: PORTS.nats,
      ...clusterOptions(layout),
    });
    await this.#secrets.apply(RELEASE_OBJECTS.natsConfiguration, { [layout.file]: text }, configuration, signal);
    const operatorSeed = seeds['operator'] ?? '';
    const { servers } = layout;
    this.#server = { servers, certificate, caBundle: bundle, configuration: text, operatorSeed, systemSeed };
  }

  /** All DNS names of a Service inside the cluster, and its cluster IP once it is assigned. */
  async #serviceNames(service: string, extra: readonly string[], signal: AbortSignal): Promise<ServerNames> {
    const { namespace } = this.#deps.config;
    const ref = { namespace, name: service };
    const found = await this.#deps.client.get<PlainObject>(TYPES.services, ref, signal);
    const { clusterIP = 'None' } = (found?.['spec'] ?? {}) as { clusterIP?: string };
    const full = `${service}.${namespace}.svc`;
    const addresses = clusterIP === 'None' || clusterIP === '' ? [] : [clusterIP];
    return { names: [full, `${full}.cluster.local`, `${service}.${namespace}`, service, ...extra], addresses };
  }
}

interface Endpoints {
  gateway: ServerNames;
  /** Undefined without an egress proxy. */
  egress: ServerNames | undefined;
  caBundle: string;
  targetAuthorities: string | undefined;
}

/** Undefined while a Service has no address. */
function endpointsOf({ gateway, egress, caBundle, targetAuthorities }: Endpoints): EndpointData | undefined {
  const gatewayAddress = addressOf(gateway, PORTS.gateway);
  if (gatewayAddress === undefined) return undefined;
  const own = { gateway: gatewayAddress, gatewayName: gateway.names[0] ?? '', caBundle };
  if (egress === undefined) return own;
  const address = addressOf(egress, PORTS.egress);
  if (address === undefined) return undefined;
  const trust = targetAuthorities === undefined ? {} : { targetAuthorities };
  return { ...own, egress: { address, name: egress.names[0] ?? '', ...trust } };
}

function addressOf({ addresses: [address] }: ServerNames, port: number): string | undefined {
  if (address === undefined) return undefined;
  return `https://${address.includes(':') ? `[${address}]` : address}:${port}`;
}

function clusterOptions({ hosts }: NatsLayout) {
  if (hosts.length === 0) return { serverName: RELEASE_OBJECTS.nats };
  const routes = hosts.map((host) => `${host}:${PORTS.natsRoutes}`);
  return { serverName: undefined, cluster: { port: PORTS.natsRoutes, routes, caFile: NATS_CA_FILE } };
}

function stateOf(data: SecretData | undefined): CaState | undefined {
  const pair = (name: string) => {
    const certificate = data?.[`${name}.crt`];
    const key = data?.[`${name}.key`];
    return certificate === undefined || key === undefined ? undefined : { certificate, key };
  };
  const current = pair('ca');
  if (current === undefined) return undefined;
  const next = pair('next');
  const previous = data?.['previous.crt'];
  return { current, ...(next === undefined ? {} : { next }), ...(previous === undefined ? {} : { previous }) };
}

function dataOf({ current, next, previous }: CaState): SecretData {
  return {
    'ca.crt': current.certificate,
    'ca.key': current.key,
    ...(next === undefined ? {} : { 'next.crt': next.certificate, 'next.key': next.key }),
    ...(previous === undefined ? {} : { 'previous.crt': previous }),
  };
}

function newSeed(): string {
  return new TextDecoder().decode(createUser().getSeed());
}

function publicKeyOf(seed: string): string {
  return fromSeed(new TextEncoder().encode(seed)).getPublicKey();
}

function sourceKeysIn(text: string | undefined): readonly SourceKey[] | undefined {
  try {
    return text === undefined ? undefined : parseSourceKeys(text);
  } catch {
    return undefined;
  }
}

function sameList(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((item, index) => item === other[index]);
}
