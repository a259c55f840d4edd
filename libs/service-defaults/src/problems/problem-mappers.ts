import { Injectable } from '@nestjs/common';
import type { Problem } from './problem';

/** Turns an error it knows into a problem; null for every other error. */
export type ProblemMapper = (error: unknown) => Problem | null;

/** Where libraries say how their errors are answered, e.g. the database's outages. An app's own errors belong in its filter. */
@Injectable()
export class ProblemMappers {
  private readonly mappers: ProblemMapper[] = [];

  add(mapper: ProblemMapper): void {
    this.mappers.push(mapper);
  }

  /** The first answer among the mappers, in the order they were added. */
  toProblem(error: unknown): Problem | null {
    for (const mapper of this.mappers) {
      const problem = mapper(error);
      if (problem !== null) return problem;
    }
    return null;
  }
}
