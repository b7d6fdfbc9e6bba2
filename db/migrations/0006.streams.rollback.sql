drop table ff_stream_summary;
drop table ff_stream_frame;
drop table ff_stream_meta;
drop type ff_event_place;
drop type ff_frame_id;
