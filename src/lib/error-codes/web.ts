/** Errors of the tools for the web and for databases. */
export const WEB_ERROR_CODES = {
  TEMPER_WEB_CONTENT_UNSUPPORTED: {
    meaning: 'A page of the web has no text that `web_fetch` reads, or its text cannot be extracted within the limits.',
    fix: 'The message has the reason. Use another address of the same content.',
  },
  TEMPER_SEARCH_FAILED: {
    meaning:
      'The search service that `web_search` uses cannot be reached, refuses the query, or does not answer as its type does.',
    fix: 'The message has the reason. Check `type`, `url` and the key of the service in the configuration.',
  },
  TEMPER_DATABASE_UNAVAILABLE: {
    meaning:
      'A database of `sql_query` cannot be reached, refuses the login, or has a certificate that is not trusted.',
    fix: 'The message has the reason. Check the host, the user, the password and the certificate in the configuration.',
  },
  TEMPER_DATABASE_QUERY_FAILED: {
    meaning: 'The database refuses a query, also one that would change something, or the query exceeds a limit.',
    fix: 'The message has the reason of the database. Send one statement that reads, and ask for fewer or smaller rows.',
  },
  TEMPER_DATABASE_ROLE_REFUSED: {
    meaning: 'The role of a database connection may do more than read and write data, for example as a superuser.',
    fix: 'Configure a role that has only SELECT on what agents may read.',
  },
} as const;
