/** The error codes of calls to model providers, a part of `ERROR_CODES`. */
export const MODEL_ERROR_CODES = {
  TEMPER_MODEL_RATE_LIMITED: {
    meaning: 'The provider rate-limited the call.',
    fix: 'Wait; the call is retried automatically.',
  },
  TEMPER_MODEL_OVERLOADED: { meaning: 'The provider is overloaded.', fix: 'Wait, or name a fallback model.' },
  TEMPER_MODEL_UNREACHABLE: {
    meaning: 'No connection to the provider: its name cannot be resolved, the host refuses, or TLS fails.',
    fix: 'Check the host that the message names, `baseUrl` of the provider, and the network; or name a fallback model.',
  },
  TEMPER_MODEL_TIMEOUT: {
    meaning: 'The provider did not respond in time.',
    fix: 'Try again, or name a fallback model.',
  },
  TEMPER_MODEL_UNAUTHORIZED: { meaning: 'The provider rejected the API key.', fix: 'Renew the API key.' },
  TEMPER_MODEL_BILLING: {
    meaning: 'The account at the provider has no credit left.',
    fix: 'Add credit to the account.',
  },
  TEMPER_MODEL_CONTEXT_OVERFLOW: {
    meaning: 'The conversation does not fit the context window of the model.',
    fix: 'Start a new session or use a model with a larger window.',
  },
  TEMPER_MODEL_FORMAT: {
    meaning: 'The provider rejected the request as malformed, or its response cannot be parsed.',
    fix: 'The message names the invalid member.',
  },
  TEMPER_MODEL_NOT_FOUND: { meaning: 'The provider has no such model.', fix: 'Correct spec.model.' },
  TEMPER_MODEL_UNAVAILABLE: {
    meaning: 'No configured provider serves this model, or all failed.',
    fix: 'Configure the provider, or name a fallback.',
  },
  TEMPER_VECTORS_UNAVAILABLE: {
    meaning:
      'The server with the vectors of discovery does not answer, or refuses the request. Searches use words alone.',
    fix: 'Wait: it is asked again after five seconds. If the error persists, check discovery.qdrant and the server.',
  },
  TEMPER_ACP_AGENT_NOT_FOUND: {
    meaning: 'No agent program of the name in spec.model.agent is configured here.',
    fix: 'Add it to `agents.yaml` in your configuration folder, or to `agentPrograms` of the chart, or remove the field.',
  },
  TEMPER_ACP_AGENT_FAILED: {
    meaning: 'The agent program of spec.model.agent does not start, ended, or broke the Agent Client Protocol.',
    fix: 'The message has the reason and the beginning of its standard error; send the message again.',
  },
  TEMPER_MCP_SERVER_FAILED: {
    meaning:
      'An MCP server of `mcp.yaml` or of a Capability does not start, ended, cannot be reached, or broke the Model Context Protocol.',
    fix: 'The message has the reason; `temper mcp tools NAME` shows whether the server works.',
  },
  TEMPER_MCP_TOOL_CHANGED: {
    meaning: 'An MCP server does not list the tool as a user accepted it, or as its Capability pins it.',
    fix: 'Read the tool with `temper mcp tools NAME`, and accept it again if it is still what you want; for a Capability, set the digest that `temper mcp manifest NAME` prints then.',
  },
} as const;
