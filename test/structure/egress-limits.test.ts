import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { DEFAULT_LIMITS } from '../../src/egress/proxy/open-connections.ts';
import { CONNECTION_LIMITS } from '../../src/egress/proxy/server.ts';
import { SHARES } from '../../src/gateway/shares/call-shares.ts';
import { SESSION_LIMITS } from '../../src/gateway/capabilities/mcp/session-limits.ts';
import { DEFAULT_MAX_CONNECTIONS } from '../../src/net/connection-limits.ts';

/** The stream of an MCP session, and a connection that is kept for its calls. */
const PER_SESSION = 2;

describe('the connections that the egress proxy permits one gateway', () => {
  const needed = {
    agent: SHARES.agent + PER_SESSION * SESSION_LIMITS.perAgent,
    namespace: SHARES.namespace + PER_SESSION * SESSION_LIMITS.perNamespace,
    all: SHARES.all + PER_SESSION * SESSION_LIMITS.all,
  };
  const { perGroup, groupsPerAddress, perSharedAddress } = CONNECTION_LIMITS;

  it('an agent and a namespace have a connection for each call and two for each MCP session that the gateway permits', () => {
    assert.ok(DEFAULT_LIMITS.perAgent >= needed.agent, `${needed.agent}`);
    assert.ok(perGroup >= needed.namespace, `${needed.namespace}`);
  });

  it('while a gateway has all calls and sessions that it permits, a namespace still gets what it may have', () => {
    assert.ok(groupsPerAddress - needed.all >= needed.namespace, `${needed.all}`);
  });

  it('two gateways leave connections of a replica to the pods', () => {
    assert.ok(2 * (groupsPerAddress + perSharedAddress) < DEFAULT_MAX_CONNECTIONS);
  });
});
