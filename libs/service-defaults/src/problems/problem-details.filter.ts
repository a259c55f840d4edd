import { Catch, HttpException, Inject, Injectable, Logger, Optional } from '@nestjs/common';
import type { ArgumentsHost, ExceptionFilter } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { pathOf } from '../logging/log-safe';
import { httpProblem, PROBLEM_JSON, ProblemException, renderProblem } from './problem';
import type { Problem } from './problem';
import { RouteTable } from './route-table';

/** Returns the problem for an error that it knows; null for any other error. */
type ProblemMapper = (error: unknown) => Problem | null;

/**
 * Registry in which libraries map their errors to problems, e.g. an unavailable database. An app's own errors
 * belong in its filter.
 */
@Injectable()
export class ProblemMappers {
  private readonly mappers: ProblemMapper[] = [];

  add(mapper: ProblemMapper): void {
    this.mappers.push(mapper);
  }

  /**
   * Returns the first problem that a mapper finds, in the order in which mappers were added; null if none
   * does.
   */
  toProblem(error: unknown): Problem | null {
    for (const mapper of this.mappers) {
      const problem = mapper(error);
      if (problem !== null) return problem;
    }
    return null;
  }
}

/**
 * Responds to every error with `application/problem+json`. An app maps its domain errors by extending this
 * class, overriding `toProblem` and providing it as APP_FILTER with `@Catch()`. Outside HTTP (in consumers)
 * it rethrows the error.
 */
@Catch()
export class ProblemDetailsFilter implements ExceptionFilter {
  // Injected as members, so that a subclass can have its own constructor.
  @Optional()
  @Inject(ProblemMappers)
  private readonly mappers?: ProblemMappers;

  @Optional()
  @Inject(RouteTable)
  private readonly routes?: RouteTable;

  private readonly logger = new Logger('Problem');

  catch(error: unknown, host: ArgumentsHost): void {
    if (host.getType() !== 'http') throw error;
    const http = host.switchToHttp();
    const request = http.getRequest<FastifyRequest>();
    const problem = this.problemOf(error, request);
    this.log(error, problem.status);
    this.send(problem, request, http.getResponse<FastifyReply>());
  }

  /**
   * Returns the problem for an error that the app knows; null leaves it to the libraries and the defaults.
   */
  protected toProblem(_error: unknown): Problem | null {
    return null;
  }

  /** Sends the response. Override it if errors have another shape, e.g. on token endpoints. */
  protected send(problem: Problem, request: FastifyRequest, reply: FastifyReply): void {
    if (reply.sent) return;
    const body = renderProblem(problem, pathOf(request.url), request.id);
    void reply
      .code(problem.status)
      .headers(problem.headers ?? {})
      .header('content-type', PROBLEM_JSON)
      .send(body);
  }

  private problemOf(error: unknown, request: FastifyRequest): Problem {
    // Nest's own error for an unknown address. A ProblemException of ours is sent unchanged.
    if (request.is404 && error instanceof HttpException && !(error instanceof ProblemException))
      return this.unroutable(request);
    return this.toProblem(error) ?? this.mappers?.toProblem(error) ?? httpProblem(error) ?? { status: 500 };
  }

  /** Returns 405 with Allow if other methods have a route at this address, else 404. */
  private unroutable(request: FastifyRequest): Problem {
    const allowed = this.routes?.methodsOf(request.url) ?? [];
    if (allowed.length === 0) return { status: 404, detail: 'There is nothing at this address.' };
    const detail = 'This method is not supported here.';
    return { status: 405, detail, headers: { Allow: allowed.join(', ') } };
  }

  private log(error: unknown, status: number): void {
    if (status === 500) this.logger.error(error);
    // A ProblemException without a cause was thrown on purpose, so its stack trace adds nothing.
    else if (status > 500 && error instanceof ProblemException && error.cause === undefined)
      this.logger.warn(`${status}: ${error.message}`);
    else if (status > 500) this.logger.warn(error);
  }
}
