import { APPLICATION_SECRETS, DEVELOPMENT_PASSWORD } from '#platform/environments.ts';
import { Difference, same, type WalkResponse } from './expectations.ts';
import type { Narrator } from './narrator.ts';

/** URLs of the platform's processes, and the secrets of the development identities that the tour uses. */
export interface TourSettings {
  auth: string;
  settings: string;
  task: string;
  customers: string;
  scheduling: string;
  receiver: string;
  identityProvider: string;
  password: string;
  backendSecret: string;
  /** Secret of `demo-reports`. */
  reportsSecret: string;
}

const DEFAULTS = {
  auth: ['AUTH_URL', 'http://127.0.0.1:3001'],
  settings: ['SETTINGS_URL', 'http://127.0.0.1:3002'],
  task: ['TASK_URL', 'http://127.0.0.1:3003'],
  customers: ['CUSTOMERS_URL', 'http://127.0.0.1:3011'],
  scheduling: ['SCHEDULING_URL', 'http://127.0.0.1:3012'],
  receiver: ['RECEIVER_URL', 'http://127.0.0.1:3013'],
  identityProvider: ['IDENTITY_PROVIDER_URL', 'http://127.0.0.1:3014'],
  password: ['TOUR_PASSWORD', DEVELOPMENT_PASSWORD],
  backendSecret: ['TOUR_BACKEND_SECRET', APPLICATION_SECRETS['demo-backend']],
  reportsSecret: ['TOUR_REPORTS_SECRET', APPLICATION_SECRETS['demo-reports']],
} as const satisfies Record<keyof TourSettings, readonly [variable: string, fallback: string]>;

/** Returns each setting from its variable, otherwise from the running platform, otherwise its default. */
export function readTourSettings(
  environment: Readonly<Record<string, string | undefined>>,
  running: Readonly<Record<string, string>> = {},
): TourSettings {
  const entries = Object.entries(DEFAULTS).map(([name, [variable, fallback]]) => [
    name,
    (environment[variable] ?? running[variable] ?? fallback).replace(/\/$/, ''),
  ]);
  return Object.fromEntries(entries) as TourSettings;
}

/** A request of the walk. URLSearchParams are sent as a form, a string unchanged, anything else as JSON. */
export interface WalkRequest {
  /** GET by default. */
  method?: 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  url: string;
  token?: string;
  headers?: Record<string, string>;
  body?: unknown;
  /** Expected status; 200 by default. */
  status?: number;
}

/**
 * The meaning of a response with the expected status, in one line, or a function that also checks the
 * response and returns that line.
 * @throws {Difference} if the response is not as the tour says
 */
export type Verify = string | ((response: WalkResponse) => string);

const REQUEST_TIMEOUT_MS = 15_000;
const POLL_INTERVAL_MS = 100;
/**
 * Time for two hops over a broker, in ms. It is generous, because the first delivery may meet a consumer that
 * is still connecting.
 */
const EVENT_TIMEOUT_MS = 10_000;
const FORM = 'application/x-www-form-urlencoded';

/** Runs the steps: sends, shows and checks, and stops at the first difference. */
export class Walk {
  readonly settings: TourSettings;
  readonly #narrator: Narrator;
  #steps = 0;

  constructor(narrator: Narrator, settings: TourSettings) {
    this.#narrator = narrator;
    this.settings = settings;
  }

  get steps(): number {
    return this.#steps;
  }

  chapter(title: string): void {
    this.#narrator.heading(title);
  }

  /** Sends a request whose response must be right at once. */
  async step(title: string, request: WalkRequest, verify: Verify): Promise<WalkResponse> {
    this.#begin(title, request);
    const startedAtMs = performance.now();
    const response = await send(request);
    this.#narrator.response(response.status, response.text, `${elapsed(startedAtMs)} ms`);
    this.#narrator.explanation(check(request, verify, response));
    return response;
  }

  /** Repeats a request until its response is right. @throws {Difference} the last one, after `withinMs` */
  async stepUntil(
    title: string,
    request: WalkRequest,
    verify: Verify,
    withinMs = EVENT_TIMEOUT_MS,
  ): Promise<WalkResponse> {
    this.#begin(title, request);
    const startedAtMs = performance.now();
    for (let attempt = 1; ; attempt++) {
      const response = await send(request);
      const note = `after ${elapsed(startedAtMs)} ms${attempt > 1 ? `, asked ${attempt} times` : ''}`;
      const verdict = judge(request, verify, response);
      if (typeof verdict === 'string') {
        this.#narrator.response(response.status, response.text, note);
        this.#narrator.explanation(verdict);
        return response;
      }
      if (performance.now() - startedAtMs > withinMs) {
        this.#narrator.response(response.status, response.text, `${note}; ${withinMs} ms were allowed`);
        throw verdict;
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
    }
  }

  #begin(title: string, request: WalkRequest): void {
    this.#steps += 1;
    this.#narrator.step(this.#steps, title);
    const body = request.body === undefined ? null : bodyText(request.body);
    this.#narrator.request(request.method ?? 'GET', request.url, shownHeaders(request), body);
  }
}

function check({ status = 200 }: WalkRequest, verify: Verify, response: WalkResponse): string {
  same('the status', response.status, status);
  return typeof verify === 'string' ? verify : verify(response);
}

function judge(request: WalkRequest, verify: Verify, response: WalkResponse): string | Difference {
  try {
    return check(request, verify, response);
  } catch (error) {
    if (error instanceof Difference) return error;
    throw error;
  }
}

function bodyText(body: unknown): string {
  if (typeof body === 'string') return body;
  return body instanceof URLSearchParams ? body.toString() : JSON.stringify(body);
}

function contentType(body: unknown): Record<string, string> {
  if (body === undefined) return {};
  return { 'content-type': body instanceof URLSearchParams ? FORM : 'application/json' };
}

function shownHeaders({ token, headers }: WalkRequest): Record<string, string> {
  return { ...(token === undefined ? {} : { authorization: `Bearer ${token}` }), ...headers };
}

async function send(request: WalkRequest): Promise<WalkResponse> {
  const hasBody = request.body !== undefined;
  try {
    const response = await fetch(request.url, {
      method: request.method ?? 'GET',
      headers: { ...shownHeaders(request), ...contentType(request.body) },
      signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
      redirect: 'manual',
      ...(hasBody ? { body: bodyText(request.body) } : {}),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, json: parsed(response, text) };
  } catch (error) {
    throw new Difference(new URL(request.url).origin, 'a response', reasonOf(error), { cause: error });
  }
}

function parsed(response: Response, text: string): unknown {
  if (!/\bjson\b/.test(response.headers.get('content-type') ?? '') || text === '') return undefined;
  return JSON.parse(text) as unknown;
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  return cause instanceof Error ? cause.message || cause.name : String(cause);
}

function elapsed(startedAtMs: number): number {
  return Math.round(performance.now() - startedAtMs);
}
