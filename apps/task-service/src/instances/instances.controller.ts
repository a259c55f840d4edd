import { Body, Controller, Get, HttpCode, Inject, Param, Post, Query } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { CurrentCaller, RequirePersona } from '@platform/access-tokens';
import type { Caller } from '@platform/access-tokens';
import { Persona } from '@platform/personas';
import { Documented, SignedCursor, validatedBy } from '@platform/service-defaults';
import { DataSource } from 'typeorm';
import { CallerScope } from '../access/caller-scope.service';
import { TaskError } from '../problems/task-error';
import { PAGE_CURSOR, keysetPage, listName } from '../paging/keyset-page';
import { CompleteInstance } from './complete-instance.handler';
import { findInstance } from './find-instance.query';
import { instanceBody } from './instance';
import type { InstanceBody } from './instance';
import { COMPLETE_INSTANCE, GET_INSTANCE, LIST_INSTANCES } from './instance-docs';
import { InstanceParams, ListInstancesDto, optionalCompleteInstanceBody } from './instance.dto';
import type { CompleteInstanceRequest } from './instance.dto';
import { listInstances } from './list-instances.query';

@Controller('Instances')
@RequirePersona(Persona.InternalPartner, Persona.Customer, Persona.Owner, Persona.ServiceProvider)
export class InstancesController {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly completeInstance: CompleteInstance,
    private readonly scope: CallerScope,
    @Inject(PAGE_CURSOR) private readonly cursor: SignedCursor,
  ) {}

  @Post(':id/commands/complete')
  @Documented(COMPLETE_INSTANCE)
  @HttpCode(200)
  async complete(
    @Param() { id }: InstanceParams,
    @Body(validatedBy(optionalCompleteInstanceBody)) request: CompleteInstanceRequest,
    @CurrentCaller() caller: Caller,
  ): Promise<InstanceBody> {
    return instanceBody(await this.completeInstance.execute(id, request, caller));
  }

  @Get()
  @Documented(LIST_INSTANCES)
  async list(
    @Query() query: ListInstancesDto,
    @CurrentCaller() caller: Caller,
  ): Promise<{ instances: InstanceBody[]; nextPageKey: string | null }> {
    const { pageKey, pageSize, facilityId, ...filters } = query;
    const scope = await this.scope.forList(caller, facilityId);
    const list = listName('instances', { facilityId, ...filters });
    const after = pageKey === undefined ? [] : this.cursor.decode(list, pageKey);
    const rows = await listInstances(this.dataSource, { ...filters, scope }, { after, limit: pageSize + 1 });
    const page = keysetPage(rows, {
      pageSize,
      cursor: this.cursor,
      list,
      position: ({ dueAt, taskInstanceId }) => [dueAt, taskInstanceId],
    });
    return { instances: page.rows.map(instanceBody), nextPageKey: page.nextPageKey };
  }

  @Get(':id')
  @Documented(GET_INSTANCE)
  async get(@Param() { id }: InstanceParams, @CurrentCaller() caller: Caller): Promise<InstanceBody> {
    const instance = await findInstance(this.dataSource, id);
    if (!instance) throw new TaskError('instance-not-found');
    await this.scope.require(caller, instance.facilityId);
    return instanceBody(instance);
  }
}
