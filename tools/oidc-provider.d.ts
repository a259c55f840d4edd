// oidc-provider ships no types. This file declares the few types of version 9 that the development identity
// provider and the benchmarks use.
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http';

  export interface Interaction {
    uid: string;
    prompt: { name: string; details: Record<string, unknown> };
    params: Record<string, unknown>;
  }

  export interface Account {
    accountId: string;
    claims(use: string, scope: string): Record<string, unknown> & { sub: string };
  }

  export interface GrantContext {
    oidc: {
      client: { clientId: string };
      session: { accountId: string };
      provider: Provider;
      requestParamScopes: Set<string>;
    };
  }

  export interface Grant {
    addOIDCScope(scope: string): void;
    addResourceScope(resource: string, scope: string): void;
    save(): Promise<string>;
  }

  /** The part of Koa's context that is needed to change a response. */
  export interface DiscoveryContext {
    path: string;
    body: unknown;
  }

  export class Provider {
    constructor(issuer: string, configuration: Record<string, unknown>);
    readonly Client: { find(clientId: string): Promise<object | undefined> };
    readonly RefreshToken: new (properties: Record<string, unknown>) => { save(): Promise<string> };
    /** Whether X-Forwarded-Proto and X-Forwarded-Host are trusted. */
    proxy: boolean;
    readonly Grant: new (properties: { clientId: string; accountId: string }) => Grant;
    on(event: 'server_error', listener: (context: unknown, error: Error) => void): this;
    use(middleware: (context: DiscoveryContext, next: () => Promise<void>) => Promise<void>): this;
    callback(): (request: IncomingMessage, response: ServerResponse) => Promise<void>;
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Interaction>;
    interactionFinished(
      request: IncomingMessage,
      response: ServerResponse,
      result: Record<string, unknown>,
      options?: { mergeWithLastSubmission?: boolean },
    ): Promise<void>;
  }
}
