// The package's exports for Nest applications, in addition to published.ts.
export { AccessTokensModule } from './nest/access-tokens.module';
export { AccessTokenHost } from './nest/access-token-host';
export { CurrentCaller, Public, RequireInternalAdministrator, RequirePersona } from './nest/access-rules';
