import type { SecureContext } from 'node:tls';
import { platformTrust } from '../../net/proxied-connection.ts';
import { type ProxyConnector, proxyConnector } from '../../net/tunnel.ts';
import { GatewayConfigFiles, type GatewayConfigFilesOptions } from './gateway-config-files.ts';

/** The egress proxy, and the token for it. */
export interface EgressEndpoint {
  /** `https://address:port` */
  origin: string;
  token: string;
  /** Opens TLS connections to the proxy, and trusts its certificate authority alone. */
  connect: ProxyConnector;
  /** The certificate authorities to trust for its targets, when the platform has some beside the public ones. */
  targetTrust?: SecureContext;
}

/** Reads where the egress proxy is. Keeps what is expensive to make of the files, which rarely change: trust, and the session of TLS. */
export class EgressEndpoints {
  readonly #files: GatewayConfigFiles;
  #connector: { of: string; connect: ProxyConnector } | undefined;
  #trust: { authorities: string; context: SecureContext } | undefined;

  constructor(options: Omit<GatewayConfigFilesOptions, 'server'>) {
    this.#files = new GatewayConfigFiles({ ...options, server: 'egress' });
  }

  /** From files read at most one second ago. Throws TEMPER_POD_INVALID. */
  async current(): Promise<EgressEndpoint> {
    const { origin, serverName, ca, token, targetAuthorities } = await this.#files.current();
    const endpoint = { origin, token, connect: this.#connectorOf({ origin, serverName, ca }) };
    return targetAuthorities === undefined ? endpoint : { ...endpoint, targetTrust: this.#trustIn(targetAuthorities) };
  }

  #connectorOf({ origin, serverName, ca }: { origin: string; serverName: string; ca: string }): ProxyConnector {
    const of = [origin, serverName, ca].join('\n');
    if (this.#connector?.of !== of) this.#connector = { of, connect: proxyConnector({ serverName, ca }) };
    return this.#connector.connect;
  }

  #trustIn(authorities: string): SecureContext {
    if (this.#trust?.authorities !== authorities) this.#trust = { authorities, context: platformTrust(authorities) };
    return this.#trust.context;
  }
}
